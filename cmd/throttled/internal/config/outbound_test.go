package config

import (
	"net/http"
	"net/netip"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAllowNetworks(t *testing.T) {
	for text, want := range map[string][]netip.Prefix{
		"":                          nil,
		"none":                      nil,
		"127.0.0.0/8":               {netip.MustParsePrefix("127.0.0.0/8")},
		"127.0.0.1, ::1":            {netip.MustParsePrefix("127.0.0.1/32"), netip.MustParsePrefix("::1/128")},
		"::ffff:127.0.0.1,fd00::/8": {netip.MustParsePrefix("127.0.0.1/32"), netip.MustParsePrefix("fd00::/8")},
		"0.0.0.0/0,::/0":            {netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")},
	} {
		c := Default()
		require.NoError(t, c.Set(allowNetworksPath, text, "--allow-network"), text)
		require.Equal(t, want, c.HTTP.AllowNetworks, text)
		require.Equal(t, want, c.HTTP.Handler().AllowNetworks)
	}
	for _, text := range []string{"x", "127.0.0.1/8", "10.0.0.0/33", "10.0.0.0/8,", "fe80::1%eth0", "::ffff:127.0.0.0/104", "localhost"} {
		c := Default()
		require.EqualError(t, c.Set(allowNetworksPath, text, "--allow-network"), `--allow-network "`+text+`" is not allowed: want a network such as `+
			`10.1.0.0/16 or fd00::/8, from its first address on, or one address, several with commas between them, or "none"`)
	}
	_, err := Read("f", []byte("http:\n  allow_networks: [10.0.0.0/8, 10.0.0.1/8]\n"))
	require.ErrorContains(t, err, `f:2:32: http.allow_networks[1] "10.0.0.1/8" is not allowed: want a network such as 10.1.0.0/16`)
	_, err = Read("f", []byte("http: {allow_networks: 10.0.0.0/8}"))
	require.ErrorContains(t, err, `f:1:24: http.allow_networks "10.0.0.0/8" is not allowed: want a list of networks`)
}

func TestProxy(t *testing.T) {
	c := Default()
	require.Nil(t, c.HTTP.Handler().Proxy)
	require.NoError(t, c.Set("http.proxy", "environment", "--http-proxy"))
	require.NotNil(t, c.HTTP.Handler().Proxy)
	require.NoError(t, c.Set("http.proxy", "socks5://u:S3CRET@h:1080", "--http-proxy"))
	u, err := c.HTTP.Handler().Proxy(&http.Request{URL: &url.URL{Scheme: "https", Host: "example.com"}})
	require.NoError(t, err)
	require.Equal(t, "socks5://u:S3CRET@h:1080", u.String())
	for _, text := range []string{"", "on", "h:3128", "ftp://S3CRET@h", "http://", "http://u:S3CRET@h:x"} {
		err := c.Set("http.proxy", text, "WEIR_HTTP_PROXY")
		require.ErrorContains(t, err, `WEIR_HTTP_PROXY is not allowed: want "off", "environment" for`)
		require.NotContains(t, err.Error(), "S3CRET")
	}
}
