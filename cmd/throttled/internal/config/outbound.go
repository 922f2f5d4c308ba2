package config

import (
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/weirq/weir/worker/httpjob"
)

// The ways to set a Proxy other than by its URL.
const (
	NoProxy          = "off"
	EnvironmentProxy = "environment" // what HTTP_PROXY, HTTPS_PROXY and NO_PROXY say
)

func proxy(in *string) field {
	const want = `"off", "environment" for what HTTP_PROXY, HTTPS_PROXY and NO_PROXY say, or a URL such as http://proxy.example.com:3128`
	return field{want: want, secret: true, value: valueOf(in), set: func(text string) bool {
		if text != NoProxy && text != EnvironmentProxy {
			u, err := url.Parse(text)
			if err != nil || u.Hostname() == "" || !slices.Contains([]string{"http", "https", "socks5"}, u.Scheme) {
				return false
			}
		}
		*in = text
		return true
	}}
}

func (h HTTP) proxy() func(*http.Request) (*url.URL, error) {
	switch h.Proxy {
	case NoProxy, "":
		return nil
	case EnvironmentProxy:
		return http.ProxyFromEnvironment
	}
	u, err := url.Parse(h.Proxy)
	return func(*http.Request) (*url.URL, error) { return u, err }
}

func failureCallback(in *string) field {
	return field{want: "an http or https URL", secret: true, value: valueOf(in), set: func(text string) bool {
		*in = text
		return text == "" || httpjob.Request{URL: text}.Validate() == nil
	}}
}

// allowNetworksPath is of a list in the file, and of a text elsewhere.
const allowNetworksPath = "http.allow_networks"

const wantNetwork = "a network such as 10.1.0.0/16 or fd00::/8, from its first address on, or one address"

// NoNetworks is another way to write that there are none, for the environment, where empty
// means not given.
const NoNetworks = "none"

// allowNetworks reads networks with commas between them.
func allowNetworks(in *[]netip.Prefix) field {
	want := wantNetwork + ", several with commas between them, or \"" + NoNetworks + "\""
	value := func() any {
		texts := make([]string, len(*in))
		for i, p := range *in {
			texts[i] = p.String()
		}
		return strings.Join(texts, ",")
	}
	return field{want: want, value: value, set: func(text string) bool {
		var all []netip.Prefix
		if text != "" && text != NoNetworks {
			for one := range strings.SplitSeq(text, ",") {
				p, ok := readNetwork(strings.TrimSpace(one))
				if !ok {
					return false
				}
				all = append(all, p)
			}
		}
		*in = all
		return true
	}}
}

// network reads one entry of the list in the file.
func network(in *netip.Prefix) field {
	return field{want: wantNetwork, value: valueOf(in), set: func(text string) (ok bool) {
		*in, ok = readNetwork(text)
		return ok
	}}
}

// readNetwork refuses a network that is written by an address within it: what was meant may be just that
// address.
func readNetwork(text string) (netip.Prefix, bool) {
	if a, err := netip.ParseAddr(text); err == nil {
		a = a.Unmap()
		return netip.PrefixFrom(a, a.BitLen()), a.Zone() == ""
	}
	p, err := netip.ParsePrefix(text)
	return p, err == nil && p == p.Masked() && !p.Addr().Is4In6()
}

func (r *reader) allowNetworks(node ast.Node) {
	var all []netip.Prefix
	r.list(allowNetworksPath, node, "networks", func(path string, value ast.Node) {
		var p netip.Prefix
		if r.field(path, network(&p), value) {
			all = append(all, p)
		}
	})
	r.config.HTTP.AllowNetworks = all
	r.note(allowNetworksPath, nodePlace(node))
}
