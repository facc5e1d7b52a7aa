package redis

import (
	"context"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/headgate/headgate/ledger"
)

// portion is how many holds of a dead holder are settled at once.
const portion = 500

// bury settles all that a dead holder holds at a provider, as of the end of its lease. It
// is done by whoever comes next, before anything else; where two do it at once, each hold
// is still settled once.
func (x *exchange) bury(ctx context.Context, p *part, name string) error {
	key, cursor := x.keys.holds(p.slug, name), uint64(0)
	for {
		scan, err := x.client.Do(ctx, x.client.B().Hscan().Key(key).Cursor(cursor).Count(portion).Build()).AsScanEntry()
		if err != nil {
			return err
		}
		if done, err := x.buryPortion(ctx, p, name, scan); done || err != nil {
			return err
		}
		if cursor = scan.Cursor; cursor == 0 {
			return nil
		}
	}
}

func (x *exchange) buryPortion(ctx context.Context, p *part, name string, scan rueidis.ScanEntry) (done bool, err error) {
	now, grave := time.Now(), newPart(p.slug, p.place, p.ruler)
	for i := 0; i+1 < len(scan.Elements); i += 2 {
		if id, err := strconv.ParseUint(scan.Elements[i], 10, 64); err == nil {
			s := share{slug: p.slug, own: true, units: parseUnits(p.slug, scan.Elements[i+1])}
			grave.addSettlement(ledger.Settlement{Hold: ledger.Hold(id), At: now}, s)
		}
	}
	c, err := grave.call(x.keys, who{holder: name, mode: asGrave, lease: x.b.Lease, epoch: x.epoch}, now)
	if err != nil {
		return true, err
	}
	results, err := x.do(ctx, []call{c}, nil)
	if err != nil {
		return true, err
	}
	r := reader{m: results[0]}
	// Otherwise it is alive again, or another process has buried it.
	return r.int() != statusOK, r.err
}
