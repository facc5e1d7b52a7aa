package main

import (
	"bytes"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/provider"
)

func TestRecognise(t *testing.T) {
	const sha = "275a021bbfb6489e54d471899f7db9d1663fc695ec2fe2a2c4538aabf651fd0f"
	for _, c := range []struct {
		text  string
		kind  provider.Kind
		value string
	}{
		{"1.1.1.1", provider.IP, "1.1.1.1"},
		{"1.1.1[.]1", provider.IP, "1.1.1.1"},
		{"1(.)1{.}1[dot]1", provider.IP, "1.1.1.1"},
		{"::ffff:1.1.1.1", provider.IP, "1.1.1.1"},
		{"1.1.1.1:53", provider.IP, "1.1.1.1"},
		{"hxxp://1.1.1[.]1/dns-query", provider.IP, "1.1.1.1"},
		{"2606:4700:4700:0:0:0:0:1111", provider.IP, "2606:4700:4700::1111"},
		{"2606[:]4700:4700::1111", provider.IP, "2606:4700:4700::1111"},
		{"[2606:4700:4700::1111]:443", provider.IP, "2606:4700:4700::1111"},
		{"[2606:4700:4700::1111]", provider.IP, "2606:4700:4700::1111"},
		{"https://[2606:4700:4700::1111]/x", provider.IP, "2606:4700:4700::1111"},
		{"Example.COM.", provider.Domain, "example.com"},
		{"example[.]com", provider.Domain, "example.com"},
		{"hXXps[://]evil.example[.]com:8443/a?b=c#d", provider.Domain, "evil.example.com"},
		{"http://user:pw@example.com/", provider.Domain, "example.com"},
		{"h**p://example.com", provider.Domain, "example.com"},
		{"example.com/path", provider.Domain, "example.com"},
		{"_dmarc.example.com", provider.Domain, "_dmarc.example.com"},
		{"bücher.example", provider.Domain, "xn--bcher-kva.example"},
		{"cafe.de", provider.Domain, "cafe.de"},
		{"44d88612fea8a8f36de82e1278abb02f", provider.Hash, "44d88612fea8a8f36de82e1278abb02f"},
		{"3395856CE81F2B7382DEE72602F798B642F14140", provider.Hash, "3395856ce81f2b7382dee72602f798b642f14140"},
		{strings.ToUpper(sha), provider.Hash, sha},
		{strings.Repeat("1", 32), provider.Hash, strings.Repeat("1", 32)},
	} {
		kind, value, err := recognise(c.text)
		assert.NoError(t, err, c.text)
		assert.Equal(t, c.kind, kind, c.text)
		assert.Equal(t, c.value, value, c.text)
	}
}

func TestRecogniseJunk(t *testing.T) {
	for text, why := range map[string]string{
		"foo bar":                         errJunk.Error(),
		"localhost":                       errJunk.Error(),
		"-a.example.com":                  errJunk.Error(),
		"a..com":                          errJunk.Error(),
		"example.123":                     errJunk.Error(),
		"javascript:alert(1)":             errJunk.Error(),
		strings.Repeat("a.", 130) + "com": errJunk.Error(),
		"ldap://example.com":              errJunk.Error(),
		"1.1.1":                           "want four numbers",
		"256.1.1.1":                       "want four numbers",
		"12345":                           "want four numbers",
		"1.1.1.0/24":                      "a network",
		"2606:4700::/32":                  "a network",
		"fe80::1%eth0":                    "a zone",
		"someone@example.com":             "an e-mail address",
		"deadbeef":                        "8 hexadecimal digits: want 32",
		strings.Repeat("a", 128):          "128 hexadecimal digits",
		"http:///path":                    "a URL without a host",
		"http://%zz/":                     "a URL without a host",
	} {
		_, _, err := recognise(text)
		assert.ErrorContains(t, err, why, text)
	}
}

func TestReadListAsPeopleSaveIt(t *testing.T) {
	list := "\ufeff1.1.1.1\r\n" + // a byte order mark, Windows line ends
		"# a comment\r\n" +
		"\r\n" +
		"1.1.1[.]1   # the same again\r\n" +
		"not an indicator\r\n" +
		"  example.com\t# with a comment \r\n" +
		"hxxp://EXAMPLE.com/#fragment\r\n" +
		"::ffff:1.1.1.1\r\n" +
		"a\x00b\r\n" +
		"\xff\xfe\r\n" +
		strings.Repeat("x", 2*maxLine+17) + "\r\n" +
		"44D88612FEA8A8F36DE82E1278ABB02F" // no end of line
	var r reading
	require.NoError(t, r.read("list.txt", strings.NewReader(list)))
	assert.Equal(t, []indicator{
		{provider.IP, "1.1.1.1", "list.txt"},
		{provider.Domain, "example.com", "list.txt"},
		{provider.Hash, "44d88612fea8a8f36de82e1278abb02f", "list.txt"},
	}, r.indicators)
	assert.Equal(t, 3, r.duplicates)
	var complaints []string
	for _, j := range r.junk {
		complaints = append(complaints, j.String())
	}
	assert.Equal(t, []string{
		`list.txt:5: "not an indicator": no IP address, domain, URL or hash`,
		`list.txt:9: "a\x00b": not UTF-8 text`,
		`list.txt:10: "\xff\xfe": not UTF-8 text`,
		`list.txt:11: "` + strings.Repeat("x", 60) + `…": longer than 64 KiB`,
	}, complaints)
}

func TestUncomment(t *testing.T) {
	for line, want := range map[string]string{
		"# all": "", "a # b": "a ", "a\t#b": "a\t", "a#b": "a#b", "a#b # c": "a#b ", "": "",
	} {
		assert.Equal(t, want, uncomment(line))
	}
}

// A buffer that ends between \r and \n must not split a line in two.
func TestReadLineAtTheEdgeOfTheBuffer(t *testing.T) {
	for n := maxLine - 3; n < maxLine+3; n++ {
		var r reading
		require.NoError(t, r.read("l", strings.NewReader("#"+strings.Repeat("x", n-1)+"\r\n1.1.1.1\r\njunk!\r\n")))
		assert.Len(t, r.indicators, 1, n)
		assert.Equal(t, 3, r.junk[len(r.junk)-1].line, n)
	}
}

func TestDuplicatesAcrossListsAreDoneOnce(t *testing.T) {
	var r reading
	require.NoError(t, r.read("a", strings.NewReader("1.1.1.1\n8.8.8.8\n")))
	require.NoError(t, r.read("b", strings.NewReader("8.8.8.8\n9.9.9.9\n")))
	assert.Equal(t, 1, r.duplicates)
	assert.Equal(t, 2, r.lists)
	assert.Equal(t, []indicator{{provider.IP, "1.1.1.1", "a"}, {provider.IP, "8.8.8.8", "a"}, {provider.IP, "9.9.9.9", "b"}}, r.indicators)
}

func TestReadErrors(t *testing.T) {
	var r reading
	assert.ErrorContains(t, r.read("l", bytes.NewReader([]byte("\xff\xfe1\x00"))), "l is UTF-16 text: want UTF-8")
	assert.ErrorIs(t, r.read("l", iotest.ErrReader(iotest.ErrTimeout)), iotest.ErrTimeout)
	require.NoError(t, r.read("empty", strings.NewReader("")))
	assert.Empty(t, r.indicators)
}

func TestShippedList(t *testing.T) {
	var r reading
	require.NoError(t, r.read("indicators.txt", strings.NewReader(shipped)))
	assert.Empty(t, r.junk)
	assert.Zero(t, r.duplicates)
	assert.Equal(t, []int{25, 20, 15}, []int{r.count(provider.IP), r.count(provider.Domain), r.count(provider.Hash)})
	assert.Len(t, r.indicators, 60)
}
