package runtime

import (
	"testing"

	"xol/internal/housetest"
)

func TestFilesInRooms(t *testing.T) { housetest.Circles(t, 8) }
