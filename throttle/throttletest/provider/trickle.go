package provider

import (
	"net/http"
	"time"
)

// Trickle answers at once, with a body that comes byte by byte.
type Trickle struct {
	Bytes  int           // of the body; 0 means without end
	Every  time.Duration // before each byte; positive
	Status int           // 0 means 200
}

// Handler makes the handler.
func (t Trickle) Handler() (http.Handler, error) {
	if t.Bytes < 0 {
		return nil, invalid("bytes", t.Bytes, "at least 1, or 0 for no end")
	}
	if t.Every <= 0 {
		return nil, invalid("every", t.Every, "a positive duration")
	}
	status, err := statusOr(t.Status, http.StatusOK)
	if err != nil {
		return nil, err
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		takeBody(r)
		out := http.NewResponseController(w)
		w.WriteHeader(status)
		err := out.Flush()
		for n := 0; err == nil && (t.Bytes == 0 || n < t.Bytes); n++ {
			if !pause(r, t.Every) {
				return
			}
			_, _ = w.Write(filler[:1])
			err = out.Flush()
		}
	}), nil
}
