package redis

import (
	"strconv"
	"strings"
	"time"

	"github.com/headgate/headgate/ledger"
)

// part is what a batch says of one provider.
type part struct {
	slug     string
	place    *place
	ruler    ruler
	send     uint64 // its number
	forget   bool
	counters []*spec
	indexes  map[string]int // by ID; from 1, as in Lua
	shapes   []string       // flattened
	byShape  map[string]int

	holds, charges, settlements, news, takes, peeks []string
	n                                               [8]int // how many there are of each

	asked  []asked
	peeked []int // places in Batch.Peek
}

// asked is a take, or its share of one.
type asked struct {
	take  int // place in Batch.Takes
	hold  ledger.Hold
	share share
}

func newPart(slug string, pl *place, r ruler) *part {
	return &part{slug: slug, place: pl, ruler: r, indexes: map[string]int{}, byShape: map[string]int{}}
}

// counter is the place of a counter in the part's list.
func (p *part) counter(s *spec) string {
	i, ok := p.indexes[s.id]
	if !ok {
		p.counters = append(p.counters, s)
		i = len(p.counters)
		p.indexes[s.id] = i
	} else if p.counters[i-1].text == "" {
		p.counters[i-1] = s
	}
	return strconv.Itoa(i)
}

// shape is the place of what a share asks among the part's shapes: calls alike are
// decided together.
func (p *part) shape(s share) string {
	words := make([]string, 0, 2*len(s.units))
	for _, u := range s.units {
		words = append(words, p.counter(u.spec), number(max(1, u.n)))
	}
	units := strings.Join(words, " ")
	name := flag(s.own) + s.endpoint + "\x00" + s.key + "\x00" + units
	i, ok := p.byShape[name]
	if !ok {
		p.shapes = append(p.shapes, flag(s.own), s.endpoint, s.key, units)
		p.n[1]++
		i = p.n[1]
		p.byShape[name] = i
	}
	return strconv.Itoa(i)
}

func number[T ~int64 | ~uint64](n T) string { return strconv.FormatInt(int64(n), 10) }

func hold(id ledger.Hold) string { return strconv.FormatUint(uint64(id), 10) }

func flag(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

// none is a list of units with none in it; "" means all.
const none = "none"

// addHold tells a hold that the server must know; what is settled of it is not held.
func (p *part) addHold(id ledger.Hold, at time.Time, s share) {
	some := make([]string, 0, len(s.units))
	for i, u := range s.units {
		if u.n > 0 {
			some = append(some, strconv.Itoa(i)+":0")
		}
	}
	if len(some) == 0 && len(s.units) > 0 {
		return
	}
	p.holds = append(p.holds, hold(id), number(p.ruler.at(at)), p.shape(s), strings.Join(some, " "))
	p.n[2]++
}

func (p *part) addCharge(ch ledger.Charge) {
	p.charges = append(p.charges, p.counter(specOf(ch.Counter)), number(p.ruler.at(ch.At)), number(ch.N))
	p.n[3]++
}

// addSettlement tells a settlement of a hold that has a share here.
func (p *part) addSettlement(s ledger.Settlement, of share) {
	var some []string
	for i, u := range of.units {
		for _, x := range s.Part {
			if x.Unit == u.place {
				some = append(some, strconv.Itoa(i)+":"+number(max(0, x.Charged)))
			}
		}
		if s.Part == nil || named(s.Part, u.place) {
			p.counter(u.spec)
		}
	}
	if s.Part != nil && len(some) == 0 {
		if !of.own || s.Trial == "" {
			return
		}
		some = []string{none}
	}
	p.settlements = append(p.settlements, hold(s.Hold), number(p.ruler.at(s.At)), flag(s.Back), string(s.Trial), strings.Join(some, " "))
	p.n[4]++
}

func (p *part) addPause(x *ledger.Pause) {
	p.news = append(p.news, "P", x.Scope, x.Name, number(until(p.ruler.now, x.Until)), x.Why, x.Detail)
	p.n[5]++
}

func (p *part) addResume(x *ledger.Pause) {
	p.news = append(p.news, "R", x.Scope, x.Name, "", "", "")
	p.n[5]++
}

func (p *part) addLearnt(l *ledger.Learnt) {
	p.news = append(p.news, "L", p.counter(specOf(l.Counter)), number(until(p.ruler.now, l.NotBefore)),
		number(max(0, l.Max)), number(until(p.ruler.now, l.Until)), "")
	p.n[5]++
}

func (p *part) addTake(take int, id ledger.Hold, s share) {
	p.takes = append(p.takes, hold(id), p.shape(s))
	p.asked = append(p.asked, asked{take, id, s})
	p.n[6]++
}

func (p *part) addPeek(at int, s *spec) {
	p.peeks = append(p.peeks, p.counter(s))
	p.peeked = append(p.peeked, at)
	p.n[7]++
}

// How a part is said.
const (
	asHolder = "0"
	asGrave  = "1" // of a holder that is dead: what it holds counts from its lease's end
	asUndone = "2" // takes back what has just been granted, besides the holder's numbers
)

// who says a part.
type who struct {
	holder    string
	mode      string
	send, seq uint64
	lease     time.Duration
	gone      bool
	grace     time.Duration
	epoch     int64
	least     int64 // the ledger's time by now
}

// call makes the script's keys and arguments, as batch.lua reads them.
func (p *part) call(k keys, w who, wall time.Time) (call, error) {
	p.n[0] = len(p.counters)
	c := call{script: providerScript}
	c.keys = append(make([]string, 0, 5+2*len(p.counters)), k.place(p.slug), k.leases(p.slug), k.pauses(p.slug), k.holds(p.slug, w.holder), k.guard(p.slug))
	lists := [][]string{p.shapes, p.holds, p.charges, p.settlements, p.news, p.takes, p.peeks}
	size := 19 + 3*len(p.counters)
	for _, list := range lists {
		size += len(list)
	}
	c.args = append(make([]string, 0, size), number(w.epoch), w.holder, number(w.send), number(w.seq),
		number(min(micros(w.lease), most)), flag(w.gone), flag(p.forget), w.mode, number(micros(w.grace)), number(w.least), number(p.ruler.sent))
	for _, n := range p.n {
		c.args = append(c.args, strconv.Itoa(n))
	}
	for _, s := range p.counters {
		if s.err != nil {
			return c, s.err
		}
		record, list := k.counter(p.slug, s.id)
		c.keys = append(c.keys, record, list)
		c.args = append(c.args, s.id, s.text, s.bounds(wall))
	}
	for _, list := range lists {
		c.args = append(c.args, list...)
	}
	return c, nil
}
