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
		{"2606:4700:4700:0:0:0:0:1111", provider.IP, "2606:4700:4700::1111"},
		{"2606[:]4700:4700::1111", provider.IP, "2606:4700:4700::1111"},
		{"[2606:4700:4700::1111]:443", provider.IP, "2606:4700:4700::1111"},
		{"[2606:4700:4700::1111]", provider.IP, "2606:4700:4700::1111"},
		{"https://[2606:4700:4700::1111]/", provider.IP, "2606:4700:4700::1111"},
		{"Example.COM.", provider.Domain, "example.com"},
		{"example[.]com", provider.Domain, "example.com"},
		{"http://user:pw@example.com/", provider.Domain, "example.com"},
		{"h**p://example.com", provider.Domain, "example.com"},
		{"example.com/path", provider.Domain, "example.com"},
		{"_dmarc.example.com", provider.Domain, "_dmarc.example.com"},
		{"bücher.example", provider.Domain, "xn--bcher-kva.example"},
		{"cafe.de", provider.Domain, "cafe.de"},
		{"someone@Example.COM", provider.Email, "someone@example.com"},
		{"Some.One+tag[@]example[.]com", provider.Email, "Some.One+tag@example.com"},
		{"x@bücher.example", provider.Email, "x@xn--bcher-kva.example"},
		{"44d88612fea8a8f36de82e1278abb02f", provider.Hash, "44d88612fea8a8f36de82e1278abb02f"},
		{"3395856CE81F2B7382DEE72602F798B642F14140", provider.Hash, "3395856ce81f2b7382dee72602f798b642f14140"},
		{strings.ToUpper(sha), provider.Hash, sha},
		{strings.Repeat("1", 32), provider.Hash, strings.Repeat("1", 32)},
	} {
		all, err := recognise(c.text)
		assert.NoError(t, err, c.text)
		assert.Equal(t, []found{{c.kind, c.value}}, all, c.text)
	}
}

// A URL that says more than its host is looked up as such, and its host besides.
func TestRecogniseURL(t *testing.T) {
	for text, want := range map[string][]found{
		"hxxp://1.1.1[.]1/dns-query":                {{provider.URL, "http://1.1.1.1/dns-query"}, {provider.IP, "1.1.1.1"}},
		"hXXps[://]Evil.example[.]com:8443/A?b=c#d": {{provider.URL, "https://evil.example.com:8443/A?b=c"}, {provider.Domain, "evil.example.com"}},
		"https://user:pw@example.com/x":             {{provider.URL, "https://example.com/x"}, {provider.Domain, "example.com"}},
		"ftp://example.com/pub":                     {{provider.URL, "ftp://example.com/pub"}, {provider.Domain, "example.com"}},
		"https://[2606:4700:4700::1111]/x":          {{provider.URL, "https://[2606:4700:4700::1111]/x"}, {provider.IP, "2606:4700:4700::1111"}},
		"http://example.com/?q=1":                   {{provider.URL, "http://example.com/?q=1"}, {provider.Domain, "example.com"}},
		"h**ps://example.com/one%20two":             {{provider.URL, "https://example.com/one%20two"}, {provider.Domain, "example.com"}},
	} {
		got, err := recognise(text)
		assert.NoError(t, err, text)
		assert.Equal(t, want, got, text)
	}
}

// What resembles nothing, or something else, is taken for what it is said to be.
func TestRecogniseAs(t *testing.T) {
	for _, c := range []struct {
		as         provider.Kind
		text, want string
		err        string
	}{
		{provider.Text, "a b c", "a b c", ""},
		{provider.Text, "1.1.1.1", "1.1.1.1", ""},
		{provider.Text, "a\x1bb", "", "control character"},
		{provider.Text, strings.Repeat("ä", longestText+1), "", "longer than 500 characters"},
		{provider.Company, "Müller & Söhne", "Müller & Söhne", ""},
		{provider.Phone, "+49 (30) 123-456", "+4930123456", ""},
		{provider.Phone, "call me", "", "no phone number"},
		{provider.URL, "example[.]com", "http://example.com/", ""},
		{provider.URL, "hxxps://Example.com", "https://example.com/", ""},
		{provider.URL, "2606:4700:4700::1111", "http://[2606:4700:4700::1111]/", ""},
		{provider.Domain, "http://example.com/x", "example.com", ""},
		{provider.Hash, "example.com", "", "is not of the kind hash"},
		{provider.Email, "a@b.example", "a@b.example", ""},
	} {
		got, err := recogniseAs(c.as, c.text)
		if c.err != "" {
			assert.ErrorContains(t, err, c.err, c.text)
			continue
		}
		assert.NoError(t, err, c.text)
		assert.Equal(t, []found{{c.as, c.want}}, got, c.text)
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
		"@example.com":                    "no e-mail address",
		"a b@example.com":                 "no e-mail address",
		"someone@localhost":               "whose domain is none",
		"deadbeef":                        "8 hexadecimal digits: want 32",
		strings.Repeat("a", 128):          "128 hexadecimal digits",
		"http:///path":                    "a URL without a host",
		"http://%zz/":                     "a URL without a host",
	} {
		_, err := recognise(text)
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
		{provider.IP, "1.1.1.1", []string{"list.txt"}},
		{provider.Domain, "example.com", []string{"list.txt"}},
		{provider.Hash, "44d88612fea8a8f36de82e1278abb02f", []string{"list.txt"}},
	}, r.indicators)
	assert.Equal(t, 3, r.duplicates)
	var complaints []string
	for _, j := range r.junk {
		complaints = append(complaints, j.String())
	}
	assert.Equal(t, []string{
		`list.txt:5: "not an indicator": no IP address, domain, URL, hash or e-mail address`,
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

// What two lists want is asked once, and both are told.
func TestDuplicatesAcrossListsAreDoneOnce(t *testing.T) {
	var r reading
	require.NoError(t, r.read("a", strings.NewReader("1.1.1.1\n8.8.8.8\n")))
	require.NoError(t, r.read("b", strings.NewReader("8.8.8.8\n9.9.9.9\n8.8.8.8\n")))
	assert.Equal(t, 1, r.duplicates)
	assert.Equal(t, 1, r.shared)
	assert.Equal(t, 2, r.lists)
	assert.Equal(t, []indicator{{provider.IP, "1.1.1.1", []string{"a"}}, {provider.IP, "8.8.8.8", []string{"a", "b"}}, {provider.IP, "9.9.9.9", []string{"b"}}}, r.indicators)
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
