package webhook

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
)

const symmetricText = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="

func parse(tb testing.TB, text string) Secret {
	tb.Helper()
	s, err := ParseSecret(text)
	require.NoError(tb, err)
	return s
}

// encode is the base64 of n different bytes.
func encode(n int) string {
	key := make([]byte, n)
	for i := range key {
		key[i] = byte(200 - i)
	}
	return base64.StdEncoding.EncodeToString(key)
}

func TestSecretsAreRead(t *testing.T) {
	seed := bytes.Repeat([]byte{7}, 32)
	private := ed25519.NewKeyFromSeed(seed)
	b64 := base64.StdEncoding.EncodeToString
	public := "whpk_" + b64(private[32:])
	for name, c := range map[string]struct{ text, canonical, public string }{
		"symmetric":           {symmetricText, symmetricText, ""},
		"without padding":     {strings.TrimRight(symmetricText, "="), symmetricText, ""},
		"shortest":            {"whsec_" + encode(24), "whsec_" + encode(24), ""},
		"longest":             {"whsec_" + encode(64), "whsec_" + encode(64), ""},
		"seed":                {"whsk_" + b64(seed), "whsk_" + b64(seed), public},
		"seed without =":      {"whsk_" + strings.TrimRight(b64(seed), "="), "whsk_" + b64(seed), public},
		"seed and public key": {"whsk_" + b64(private), "whsk_" + b64(private), public},
		"public key":          {public, public, public},
	} {
		t.Run(name, func(t *testing.T) {
			s := parse(t, c.text)
			require.Equal(t, c.canonical, s.Text())
			require.True(t, s.Equal(parse(t, s.Text())))
			require.Equal(t, c.text != public, s.CanSign())
			p, ok := s.Public()
			require.Equal(t, c.public != "", ok)
			require.Equal(t, c.public, p.Text())
		})
	}
}

func TestSecretsAreRefusedWithoutBeingRepeated(t *testing.T) {
	body := strings.TrimPrefix(symmetricText, "whsec_")
	private := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, 32))
	private[63] ^= 1
	const allowed = ` is not allowed: want ` + allowedSecret
	for name, c := range map[string]struct{ text, want string }{
		"empty":            {"", "secret of 0 bytes without a known prefix" + allowed},
		"no prefix":        {body, "secret of 44 bytes without a known prefix" + allowed},
		"upper case":       {"WHSEC_" + body, "secret of 50 bytes without a known prefix" + allowed},
		"a signature's":    {"v1," + symmetricText, "secret of 53 bytes with the version of a signature in front" + allowed},
		"not base64":       {"whsec_MDEyMzQ1Njc4O!FiY2RlZjAxMjM0NTY3ODlhYmNkZWY=", "secret whsec_… of 50 bytes that is not base64" + allowed},
		"URL alphabet":     {"whsec_" + strings.Repeat("-_", 20), "secret whsec_… of 46 bytes that is not base64" + allowed},
		"line end":         {symmetricText + "\n", "secret whsec_… of 51 bytes that is not base64" + allowed},
		"space":            {symmetricText + " ", "secret whsec_… of 51 bytes that is not base64" + allowed},
		"half the padding": {"whsec_" + encode(25) + "=", "secret whsec_… of 43 bytes that is not base64" + allowed},
		"0 bytes":          {"whsec_", "secret whsec_… of 0 bytes before base64 is not allowed: want 24 to 64 bytes"},
		"8 bytes":          {"whsec_" + encode(8), "secret whsec_… of 8 bytes before base64 is not allowed: want 24 to 64 bytes"},
		"23 bytes":         {"whsec_" + encode(23), "secret whsec_… of 23 bytes before base64 is not allowed: want 24 to 64 bytes"},
		"65 bytes":         {"whsec_" + encode(65), "secret whsec_… of 65 bytes before base64 is not allowed: want 24 to 64 bytes"},
		"short seed":       {"whsk_" + encode(31), "secret whsk_… of 31 bytes before base64 is not allowed: want an ed25519 seed of 32 bytes, or private key of 64"},
		"two halves":       {"whsk_" + base64.StdEncoding.EncodeToString(private), "secret whsk_… whose two halves are of different keys" + allowed},
		"short public key": {"whpk_" + encode(64), "secret whpk_… of 64 bytes before base64 is not allowed: want an ed25519 public key of 32 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := ParseSecret(c.text)
			require.EqualError(t, err, c.want)
			require.ErrorIs(t, err, throttle.ErrInvalid)
			require.True(t, s.IsZero())
		})
	}
}

// Whatever is done to show a secret shows its kind only.
func TestSecretsAreMasked(t *testing.T) {
	for text, masked := range map[string]string{symmetricText: "whsec_***", "whsk_" + encode(32): "whsk_***"} {
		s := parse(t, text)
		hidden := struct{ s Secret }{s}
		var log bytes.Buffer
		logger := slog.New(slog.NewJSONHandler(&log, nil))
		logger.Info("x", "secret", s, "list", []Secret{s}, "any", hidden)
		slog.New(slog.NewTextHandler(&log, nil)).Info("x", "secret", s, "list", []Secret{s}, "any", hidden)
		encoded, err := json.Marshal(map[string]any{"a": s, "b": &s, "c": []Secret{s}})
		require.NoError(t, err)
		require.JSONEq(t, fmt.Sprintf(`{"a":%q,"b":%[1]q,"c":[%[1]q]}`, masked), string(encoded))
		shown := log.String() + string(encoded)
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%o", "%c", "%U", "%t", "%p", "%z"} {
			if verb != "%p" { // an address, whatever a type says
				require.Equal(t, masked, fmt.Sprintf(verb, s), verb)
			}
			shown += fmt.Sprintf(verb+verb+verb, &s, []Secret{s}, hidden)
		}
		key, err := base64.StdEncoding.DecodeString(text[strings.Index(text, "_")+1:])
		require.NoError(t, err)
		for _, trace := range []string{
			text[8:20], string(key[:8]), fmt.Sprintf("%x", key[:8]), fmt.Sprintf("%X", key[:8]), fmt.Sprintf("%d", key[:4])[1:8],
		} {
			require.NotContains(t, shown, trace)
		}
	}
	require.Empty(t, Secret{}.String())
	require.Empty(t, Secret{}.Text())
}

func TestAMaskedSecretCannotBeReadBack(t *testing.T) {
	var s Secret
	require.NoError(t, json.Unmarshal([]byte(`"`+symmetricText+`"`), &s))
	require.Equal(t, symmetricText, s.Text())
	encoded, err := json.Marshal(s)
	require.NoError(t, err)
	require.ErrorContains(t, json.Unmarshal(encoded, &s), "secret whsec_… of 9 bytes that is not base64")
}

func TestNewSecretsDiffer(t *testing.T) {
	for _, fresh := range []func() Secret{NewSecret, NewPrivateKey} {
		a, b := fresh(), fresh()
		require.True(t, a.CanSign())
		require.False(t, a.Equal(b))
		require.True(t, a.Equal(parse(t, a.Text())))
	}
	require.True(t, strings.HasPrefix(NewSecret().Text(), "whsec_"))
	require.True(t, strings.HasPrefix(NewPrivateKey().Text(), "whsk_"))
}
