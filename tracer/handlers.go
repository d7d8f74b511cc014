package tracer

import (
	"errors"

	"xol/image"
	"xol/rpn"
	"xol/runtime"
	"xol/usdt"
)

// ProgramHandler returns a handler for probes that runs an RPN program. done,
// where it is not nil, is called with how each run ended.
func ProgramHandler(p *rpn.Program, globals *rpn.Globals, log rpn.Log, done func(rpn.Result, error)) func(*runtime.Context) bool {
	return func(c *runtime.Context) bool {
		result, err := p.Run(&c.Regs, c.Memory(), globals, log)
		if done != nil {
			done(result, err)
		}
		return false
	}
}

// ArgValue is the value of a marker's argument at a hit, or why there is none.
type ArgValue struct {
	Value uint64 // extended by its sign, if it has one
	Err   error  // of the memory, or a *usdt.Error
}

// MarkerProbe is a probe on a static marker.
type MarkerProbe struct {
	Marker image.Marker
	Args   []usdt.Arg // of those that cannot be understood, only the text

	t      *Tracer
	link   *runtime.Link
	values []ArgValue
}

// Mark puts a probe on a static marker of the program: handler is called with
// the values of its arguments, which are valid during the call. Arguments that
// cannot be understood, as they name symbols that were stripped, have errors for
// values. While the probe is there, the marker's semaphore says that somebody
// listens. It returns a *runtime.RegisterError, or an error of the memory that
// should hold the semaphore.
func (t *Tracer) Mark(m image.Marker, handler func(c *runtime.Context, values []ArgValue)) (*MarkerProbe, error) {
	p := &MarkerProbe{Marker: m, t: t}
	unclear := p.parse()
	p.values = make([]ArgValue, len(p.Args))
	var err error
	p.link, err = t.r.Attach(runtime.Probe{Addr: m.Location, PreHandler: func(c *runtime.Context) bool {
		for i := range p.Args {
			if p.values[i].Err = unclear[i]; p.values[i].Err == nil {
				p.values[i].Value, p.values[i].Err = p.Args[i].Eval(&c.Regs, c.Memory(), 0)
			}
		}
		handler(c, p.values)
		return false
	}})
	if err != nil {
		return nil, err
	}
	if err := p.listen(1); err != nil {
		return nil, errors.Join(err, p.link.Close())
	}
	return p, nil
}

// parse sets the arguments, and returns what is wrong with each.
func (p *MarkerProbe) parse() (unclear []error) {
	for _, text := range usdt.Split(p.Marker.Args) {
		args, err := usdt.Parse(p.t.isa, text, p.t.image.SymbolAddress)
		if err != nil {
			args = []usdt.Arg{{Text: text}}
		}
		p.Args = append(p.Args, args...)
		unclear = append(unclear, err)
	}
	return unclear
}

// Close takes the probe away.
func (p *MarkerProbe) Close() error {
	if err := p.link.Close(); err != nil {
		return err
	}
	return p.listen(^uint16(0))
}

// listen adds to the count of those who listen to the marker.
func (p *MarkerProbe) listen(n uint16) error {
	if p.Marker.Semaphore == 0 {
		return nil
	}
	m, order := p.t.r.Memory(), p.t.isa.ByteOrder()
	var b [2]byte
	if err := m.Read(b[:], p.Marker.Semaphore); err != nil {
		return err
	}
	order.PutUint16(b[:], order.Uint16(b[:])+n)
	return m.Write(p.Marker.Semaphore, b[:])
}
