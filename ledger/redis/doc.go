// Package redis is a ledger's store on Redis or Valkey: one server, a Sentinel group or
// a Cluster. [Open] makes it of a URL; ledger.Open makes a Ledger of it.
//
//	store, err := redis.Open(ctx, "rediss://headgate@cache.internal:6379/0", redis.Options{Password: pw})
//	l, err := ledger.Open(store, ledger.Settings{})
//
// # How a batch is carried out
//
// What a batch says of one provider is one run of one Lua script: undivided, at the
// server's time, in microseconds. It reads everything, decides, and then writes, so that
// an error leaves all as it was. The arithmetic is that of package limit, rounded to the
// strict side: a window's entries are exact up to 1,024, then in slots of a 1,024th; what
// is told out of order by less than a slot counts from the later instant; a charge of a
// token bucket costs whole microseconds; numbers above 2^52 count as 2^52. A second,
// small script is run along with it for what all providers have in common. Both are sent
// together: one round trip, however many takes there are in it.
//
// A batch that names several providers is carried out provider by provider. A take whose
// counters are of several is all or nothing, too, but others may see for the length of a
// round trip that a part of it is held.
//
// # Keys
//
// Those of one provider have one hash tag, those that are common another, so that a
// script has all of its keys on one server of a Cluster; all are declared. P is the prefix
// ("headgate"), S a provider's slug, C a counter's ID without it.
//
//	{P}                hash    schema, epoch, clock, version of the news
//	{P}:holders        zset    who is there, by the end of the lease: how many there are
//	{P}:names          zset    the same by name: which of them one is
//	{P}:news           hash    pauses of each provider, a copy for those who only listen
//	{P}:providers      set     slugs: where a hold may be that a process does not know
//	{P:S}              hash    schema, epoch, generation, version of the pauses, when it was made
//	{P:S}:leases       zset    who holds something of this provider, by the end of the lease
//	{P:S}:pauses       hash    pauses, and which call is the one that goes alone
//	{P:S}:h:HOLDER     hash    its holds, its last numbers
//	{P:S}:c:C          string  a counter (MessagePack)
//	{P:S}:l:C          list    a window's entries: instant and units by turns
//
// Why a provider has leases, numbers and an epoch of its own: its script can see no other
// keys in a Cluster. A lease is renewed there only while something is held there. Who
// finds a holder dead settles what it holds first, as of the end of its lease.
//
// Every key expires: what belongs to a counter after its window, the lease and five
// minutes, as long as nothing is held of it; the others after an hour or more without use.
// What a counter needs at most (measured by a test, Redis 7.0, an ID of about 30 letters):
//
//	sliding_window, leaky_bucket     60 entries     1.3 KB
//	sliding_window, leaky_bucket     1,000 or more   16 KB
//	token_bucket                                    0.5 KB
//	fixed_window, sliding_window_counter            0.4 KB
//	in_flight                                       0.2 KB
//
// A hold takes about 100 bytes, a process 300 for each provider it uses.
//
// # Lost state
//
// A state has an epoch, which rises from one to the next. A batch that knows another one
// is told so, and nothing of it is carried out; for a second nothing is granted then, so
// that all can tell what they hold and have spent. A server that has been emptied is found
// that way. In a Cluster a single server may be: who misses what it knew there (or finds
// a provider's record that was made later than the one it knew) renews the epoch, and does
// so until it has heard of another one; and so all of it begins anew. A server that has
// gone back by up to five seconds (a failover to a copy that lagged, a crash with an
// append-only file) is found by the number of the last batch: holds are told again, and
// Reply.Warning says that what was spent in that time is lost. One that has gone back
// further has lost its state.
//
// A clock that steps back does not stop the ledger's time, which goes on at its rate; one
// that is set forward frees what counts that much earlier, which no script can see. Several
// servers of a Cluster may differ by any amount.
//
// # What the server needs
//
// Redis from 6.2 on, or Valkey. A memory that is not full: with a maxmemory-policy other
// than noeviction keys are dropped, and with them what was spent; Reply.Warning says so,
// and also where nothing is kept on disk. The server's clock should be kept by NTP. A user
// needs (besides ~{P}* ~{P:*, as an ACL has it: all keys of the prefix)
//
//	+@connection +evalsha +eval +time +hget +hset +hdel +hmget +hgetall +hlen +hscan
//	+get +set +del +lrange +rpush +ltrim +zadd +zrem +zcard +zrank +zscore +zrangebyscore
//	+sadd +smembers +expire +pexpire +pexpireat
//
// and in a Cluster +cluster|slots +cluster|shards; with +info and +config|get it is also
// told what is wrong with the server's configuration.
package redis
