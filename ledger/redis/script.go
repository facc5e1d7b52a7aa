package redis

import (
	"crypto/sha1" //nolint:gosec // the name that EVALSHA knows a script by
	_ "embed"
	"encoding/hex"
	"strings"

	"github.com/redis/rueidis"
)

var (
	//go:embed lua/clock.lua
	luaClock string
	//go:embed lua/window.lua
	luaWindow string
	//go:embed lua/leaky.lua
	luaLeaky string
	//go:embed lua/bucket.lua
	luaBucket string
	//go:embed lua/aligned.lua
	luaAligned string
	//go:embed lua/counter.lua
	luaCounter string
	//go:embed lua/pause.lua
	luaPause string
	//go:embed lua/batch.lua
	luaBatch string
	//go:embed lua/decide.lua
	luaDecide string
	//go:embed lua/write.lua
	luaWrite string
	//go:embed lua/common.lua
	luaCommon string
)

// script is a Lua script with the name that the server knows it by.
type script struct{ text, sha string }

func newScript(parts ...string) script {
	text := strings.Join(parts, "\n")
	sum := sha1.Sum([]byte(text)) //nolint:gosec // see above
	return script{text: text, sha: hex.EncodeToString(sum[:])}
}

// The two scripts: what a batch says of one provider, and what is common to all.
var (
	providerScript = newScript(luaClock, luaWindow, luaLeaky, luaBucket, luaAligned, luaCounter, luaPause, luaBatch, luaDecide, luaWrite)
	commonScript   = newScript(luaClock, luaCommon)
)

// call is one run of a script.
type call struct {
	script script
	keys   []string
	args   []string
}

func (c call) short(b rueidis.Builder) rueidis.Completed {
	return b.Evalsha().Sha1(c.script.sha).Numkeys(int64(len(c.keys))).Key(c.keys...).Arg(c.args...).Build()
}

func (c call) whole(b rueidis.Builder) rueidis.Completed {
	return b.Eval().Script(c.script.text).Numkeys(int64(len(c.keys))).Key(c.keys...).Arg(c.args...).Build()
}

// How a script answers: the first element of what it returns.
const (
	statusOK      = 0
	statusForeign = 1 // the epoch is another one
	statusBury    = 2 // a holder is dead whose holds have to be settled first
	statusBounds  = 3 // the calendar windows that came along are not those around the server's now
	statusStale   = 4 // a later batch of the holder has been carried out
)
