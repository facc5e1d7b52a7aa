package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/ledger/sqlite"
)

// What other file systems are, no test can mount: the table and its use are tested.
func TestNetworkFileSystemsAreRefused(t *testing.T) {
	for _, kind := range []string{"NFS", "SMB", "CIFS", "FUSE", "Ceph"} {
		require.True(t, sqlite.KnowsNetwork(kind), kind)
	}
	sqlite.PretendNetwork(t, "NFS")
	path := filepath.Join(t.TempDir(), "ledger.db")
	_, err := sqlite.Open(path, sqlite.Options{})
	require.ErrorContains(t, err, "is on a network file system (NFS), where locks cannot be relied on: choose a local one, ledger/redis for many machines, or Options.Network")
	require.NoFileExists(t, path)
	s, err := sqlite.Open(path, sqlite.Options{Network: true})
	require.NoError(t, err)
	require.NoError(t, s.Close())
}
