package main

import (
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Flags of open: not to wait for the other end of a FIFO, and not to follow a link.
const (
	openAtOnce = unix.O_NONBLOCK
	openNoLink = unix.O_NOFOLLOW
)

// pseudoFilesystems are those that show what the kernel knows: reading there may wait,
// change something or have no end [include/uapi/linux/magic.h].
var pseudoFilesystems = map[int64]bool{
	unix.PROC_SUPER_MAGIC:    true,
	unix.SYSFS_MAGIC:         true,
	unix.DEBUGFS_MAGIC:       true,
	unix.TRACEFS_MAGIC:       true,
	unix.CGROUP_SUPER_MAGIC:  true,
	unix.CGROUP2_SUPER_MAGIC: true,
	unix.DEVPTS_SUPER_MAGIC:  true,
	unix.SECURITYFS_MAGIC:    true,
	unix.BPF_FS_MAGIC:        true,
	unix.PSTOREFS_MAGIC:      true,
	unix.EFIVARFS_MAGIC:      true,
	unix.SELINUX_MAGIC:       true,
	unix.SMACK_MAGIC:         true,
	unix.BINFMTFS_MAGIC:      true,
	unix.NSFS_MAGIC:          true,
	0x62656570:               true, // configfs
	0x65735543:               true, // fusectl
	0x19800202:               true, // mqueue
}

// isPseudo reports whether a folder is in a file system that is no storage.
func isPseudo(path string) bool {
	var s unix.Statfs_t
	return unix.Statfs(path, &s) == nil && pseudoFilesystems[int64(s.Type)]
}

// fileID tells a file from others under all of its names.
type fileID struct{ dev, ino uint64 }

func idOf(info fs.FileInfo) (id fileID, ok bool) {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fileID{}, false
	}
	return fileID{uint64(s.Dev), s.Ino}, true
}

// runningRelease returns the release of the kernel that runs; empty where it is not
// known.
func runningRelease() string {
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return ""
	}
	return string(release)
}
