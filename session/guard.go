//go:build linux && (amd64 || arm64 || ppc64 || ppc64le)

package session

import (
	"context"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"xol/instrument"
	"xol/machine"
	"xol/process"
)

// The guard is a small process that traces the program for a session. It has no files open
// and plans nothing; so it lives on where its session is killed, sees that their connection
// has ended, and takes everything back.

// toGuard is what a session says to its guard: one of the fields.
type toGuard struct {
	Start  *wireCommand
	Attach int
	Follow bool
	Dry    bool
	Close  bool
	Set    *switches

	// Answers.
	Placements []sentPlacement
	Err        *sentError
	Read       *memoryRead
}

// sentPlacement is a placement, with a new layout as it is sent.
type sentPlacement struct {
	Placement placement // without New
	New       *packed
}

func sentPlacements(list []placement) (sent []sentPlacement) {
	for _, p := range list {
		s := sentPlacement{Placement: p}
		s.Placement.New = nil
		if p.New != nil {
			s.New = pack(p.New)
		}
		sent = append(sent, s)
	}
	return sent
}

func receivedPlacements(sent []sentPlacement) (list []placement) {
	for _, s := range sent {
		p := s.Placement
		if s.New != nil {
			p.New = s.New.unpack()
		}
		list = append(list, p)
	}
	return list
}

// wireCommand is a Command whose files are those of the guard.
type wireCommand struct {
	Path      string
	Args, Env []string
	Dir       string
}

// toFront is what a guard says to its session: one of the fields. All but Done, Exited,
// Gone, Stopped and Corrected are to be answered.
type toFront struct {
	Begun     bool // with PID or Err
	PID       int
	Mapped    *mapped
	Installed *installed
	Hit       *gateHit
	Corrected *corrected
	Gone      *gonePlacement
	Stopped   time.Duration // the longest stop
	Exited    *exit
	Memory    []byte // answers Read
	Set       bool   // with Err: answers Set
	Done      bool   // with Err
	Err       *sentError
}

type exit struct {
	PID    int
	Status syscall.WaitStatus
}

type memoryRead struct {
	Addr uint64
	Size int
}

// wire is a connection between a session and its guard.
type wire struct {
	conn *os.File
	enc  *gob.Encoder
	dec  *gob.Decoder
	send sync.Mutex
}

func newWire(f *os.File) *wire { return &wire{conn: f, enc: gob.NewEncoder(f), dec: gob.NewDecoder(f)} }

func (w *wire) write(m any) error {
	w.send.Lock()
	defer w.send.Unlock()
	return w.enc.Encode(m)
}

// guardFile is the descriptor of the connection in a guard.
const guardFile = 3

// Guard is what a guard does (see Options.Guard): it never returns an error that anybody is
// left to be told of, and ends when its session does.
func Guard() error {
	// What the terminal sends is for the program and the session.
	drop := make(chan os.Signal, 1)
	signal.Notify(drop, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGTSTP)
	unix.CloseOnExec(guardFile)
	conn := os.NewFile(guardFile, "session")
	if conn == nil {
		return errors.New("session: a guard is started by a session only")
	}
	g := &guard{wire: newWire(conn), answers: make(chan toGuard)}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var first toGuard
	if err := g.dec.Decode(&first); err != nil {
		return fmt.Errorf("session: a guard is started by a session only: %w", err)
	}
	g.over = ctx
	e := newEngine(g, first.Follow, first.Dry)
	go g.listen(e, cancel)
	var pid int
	var err error
	if first.Start != nil {
		c := first.Start
		pid, err = e.start(&process.Command{Path: c.Path, Args: c.Args, Env: c.Env, Dir: c.Dir})
	} else {
		pid, err = e.attach(first.Attach)
	}
	g.write(&toFront{Begun: true, PID: pid, Err: sent(err)})
	if err == nil {
		err = e.run(ctx)
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, errEnough) || errors.Is(err, errSessionGone) && ctx.Err() != nil {
		err = nil
	}
	err = errors.Join(err, e.close())
	g.write(&toFront{Done: true, Err: sent(err)})
	return nil
}

// sentError is an error that has come from the other process.
type sentError struct {
	Text  string
	Known []int // which of knownErrors it is
}

// knownErrors are those that callers ask for.
var knownErrors = [...]error{
	process.ErrPermission, process.ErrTraced, process.ErrNoProcess, process.ErrZombie, process.ErrKernelThread,
	process.ErrWidth, process.ErrISA, process.ErrTaken, process.ErrGone, instrument.ErrNoRoom, ErrText,
	os.ErrNotExist, os.ErrPermission,
}

// sent returns what is sent of an error; nil of none.
func sent(err error) *sentError {
	if err == nil {
		return nil
	}
	s := &sentError{Text: err.Error()}
	for i, known := range knownErrors {
		if errors.Is(err, known) {
			s.Known = append(s.Known, i)
		}
	}
	return s
}

// received returns it as an error.
func (s *sentError) received() error {
	if s == nil {
		return nil
	}
	return s
}

func (s *sentError) Error() string { return s.Text }

// Is makes it the known errors that it was.
func (s *sentError) Is(target error) bool {
	return slices.ContainsFunc(s.Known, func(i int) bool { return i < len(knownErrors) && knownErrors[i] == target })
}

// guard is the front that a guard's engine asks: the session at the other end.
type guard struct {
	*wire
	answers chan toGuard
	over    context.Context // ended when the session is gone, or wants the end
}

var errSessionGone = errors.New("session: it has ended")

// listen passes answers on, until the session ends.
func (g *guard) listen(e *engine, cancel context.CancelFunc) {
	defer cancel()
	for {
		var m toGuard
		if err := g.dec.Decode(&m); err != nil || m.Close {
			return
		}
		if m.Set != nil {
			go func() {
				err := e.set(*m.Set)
				g.write(&toFront{Set: true, Err: sent(err)})
			}()
			continue
		}
		select {
		case g.answers <- m:
		case <-g.over.Done():
			return
		}
	}
}

// ask says something to the session and waits for its answer.
func (g *guard) ask(m *toFront) (answer toGuard, err error) {
	if err := g.write(m); err != nil {
		return answer, errSessionGone
	}
	select {
	case answer = <-g.answers:
	case <-g.over.Done():
		return answer, errSessionGone
	}
	return answer, answer.Err.received()
}

func (g *guard) plan(m *mapped) ([]placement, error) {
	answer, err := g.ask(&toFront{Mapped: m})
	return receivedPlacements(answer.Placements), err
}

func (g *guard) stopped(longest time.Duration) error { return g.write(&toFront{Stopped: longest}) }

func (g *guard) gone(p *gonePlacement) error { return g.write(&toFront{Gone: p}) }

func (g *guard) installed(i *installed) error {
	_, err := g.ask(&toFront{Installed: i})
	return err
}

// hit serves memory until the session has done with the hit.
func (g *guard) hit(h *gateHit, mem machine.Memory) error {
	m := &toFront{Hit: h}
	for {
		answer, err := g.ask(m)
		if err != nil || answer.Read == nil {
			return err
		}
		m = &toFront{Memory: make([]byte, answer.Read.Size)}
		if err := mem.Read(m.Memory, answer.Read.Addr); err != nil {
			m.Memory = nil
		}
	}
}

func (g *guard) corrected(c *corrected) error { return g.write(&toFront{Corrected: c}) }

func (g *guard) exited(pid int, status syscall.WaitStatus) error {
	return g.write(&toFront{Exited: &exit{pid, status}})
}

// guarded is the tracer's side in a guard.
type guarded struct {
	*wire
	session *Session
	cmd     *exec.Cmd
	follow  bool
	end     *toFront // Done has come
	wasSet  chan error
	ended   chan struct{} // closed when the guard does not answer any more
}

func newGuarded(s *Session, opt Options, files []*os.File) (*guarded, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socketpair", err)
	}
	here, there := os.NewFile(uintptr(pair[0]), "guard"), os.NewFile(uintptr(pair[1]), "guard")
	defer there.Close()
	cmd := exec.Command(opt.Guard[0], opt.Guard[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	for i, std := range []any{&cmd.Stdin, &cmd.Stdout, &cmd.Stderr} {
		if files == nil {
			break
		}
		var f *os.File
		if i < len(files) {
			f = files[i]
		}
		switch std := std.(type) {
		case *io.Reader:
			*std = nil
			if f != nil {
				*std = f
			}
		case *io.Writer:
			*std = nil
			if f != nil {
				*std = f
			}
		}
	}
	cmd.ExtraFiles = []*os.File{there}
	if err := cmd.Start(); err != nil {
		here.Close()
		return nil, fmt.Errorf("session: the guard does not start: %w", err)
	}
	return &guarded{wire: newWire(here), session: s, cmd: cmd, follow: opt.Follow, wasSet: make(chan error, 1), ended: make(chan struct{})}, nil
}

func (g *guarded) start(cmd *process.Command) (int, error) {
	return g.begin(&toGuard{Start: &wireCommand{Path: cmd.Path, Args: cmd.Args, Env: cmd.Env, Dir: cmd.Dir}, Follow: g.follow, Dry: g.session.opt.DryRun})
}

func (g *guarded) attach(pid int) (int, error) {
	return g.begin(&toGuard{Attach: pid, Follow: g.follow})
}

// begin has the guard begin, and answers it until it has.
func (g *guarded) begin(m *toGuard) (pid int, err error) {
	if err := g.write(m); err != nil {
		g.conn.Close()
		return 0, err
	}
	for {
		var m toFront
		if err := g.dec.Decode(&m); err != nil {
			return 0, fmt.Errorf("session: the guard has ended: %w", err)
		}
		if m.Begun {
			return m.PID, m.Err.received()
		}
		if err := g.answer(&m); err != nil {
			return 0, err
		}
	}
}

// run answers the guard. When ctx ends it asks it to end, and answers it until it has.
func (g *guarded) run(ctx context.Context) error {
	defer close(g.ended)
	stop := context.AfterFunc(ctx, func() { g.write(&toGuard{Close: true}) })
	defer stop()
	for {
		var m toFront
		if err := g.dec.Decode(&m); err != nil {
			return fmt.Errorf("session: the guard has ended: %w", err)
		}
		if m.Done {
			g.end = &m
			return m.Err.received()
		}
		if err := g.answer(&m); err != nil && !errors.Is(err, unix.EPIPE) { // what it has said before it ended comes yet
			return err
		}
	}
}

// answer answers one message of the guard.
func (g *guarded) answer(m *toFront) error {
	var answer toGuard
	var err error
	switch s := g.session; {
	case m.Mapped != nil:
		var list []placement
		list, err = s.plan(m.Mapped)
		answer.Placements = sentPlacements(list)
	case m.Installed != nil:
		err = s.installed(m.Installed)
	case m.Hit != nil:
		err = s.hit(m.Hit, remoteMemory{g})
	case m.Corrected != nil:
		return s.corrected(m.Corrected)
	case m.Stopped != 0:
		return s.stopped(m.Stopped)
	case m.Gone != nil:
		return s.gone(m.Gone)
	case m.Exited != nil:
		return s.exited(m.Exited.PID, m.Exited.Status)
	case m.Set:
		g.wasSet <- m.Err.received()
		return nil
	default:
		return nil
	}
	answer.Err = sent(err)
	return g.write(&answer)
}

func (g *guarded) set(to switches) error {
	if err := g.write(&toGuard{Set: &to}); err != nil {
		return err
	}
	select {
	case err := <-g.wasSet:
		return err
	case <-g.ended:
		return process.ErrGone
	}
}

func (g *guarded) close() error {
	g.write(&toGuard{Close: true})
	for g.end == nil {
		var m toFront
		if err := g.dec.Decode(&m); err != nil {
			break
		}
		if m.Done {
			g.end = &m
		} else if err := g.answer(&m); err != nil && !errors.Is(err, unix.EPIPE) {
			break
		}
	}
	g.conn.Close()
	return g.cmd.Wait()
}

func (g *guarded) file(fd int) (*os.File, error) {
	return os.OpenFile(fmt.Sprintf("/proc/%d/fd/%d", g.cmd.Process.Pid, fd), os.O_RDWR, 0)
}

// remoteMemory is the memory of a process whose thread waits in a hit.
type remoteMemory struct{ g *guarded }

func (m remoteMemory) Read(dst []byte, addr uint64) error {
	if err := m.g.write(&toGuard{Read: &memoryRead{addr, len(dst)}}); err != nil {
		return err
	}
	var answer toFront
	if err := m.g.dec.Decode(&answer); err != nil {
		return err
	}
	if len(answer.Memory) != len(dst) {
		return &process.AddressError{Addr: addr}
	}
	copy(dst, answer.Memory)
	return nil
}

func (m remoteMemory) ReadWord(addr uint64) (uint64, error) {
	var word [8]byte
	if err := m.Read(word[:], addr); err != nil {
		return 0, err
	}
	return binary.NativeEndian.Uint64(word[:]), nil
}

var errReadOnly = errors.New("session: memory cannot be written in a hit")

func (remoteMemory) Write(uint64, []byte) error { return errReadOnly }

func (remoteMemory) WriteWord(uint64, uint64) error { return errReadOnly }
