package provider

import (
	"bytes"
	"net/http"
	"strconv"
)

// Large answers with a large body, or one without end.
type Large struct {
	Bytes       int64 // of the body; 0 means without end
	HeaderBytes int   // of a header beside it; 0 means none
	Status      int   // 0 means 200
}

// Handler makes the handler.
func (l Large) Handler() (http.Handler, error) {
	if l.Bytes < 0 {
		return nil, invalid("bytes", l.Bytes, "at least 1, or 0 for no end")
	}
	if l.HeaderBytes < 0 {
		return nil, invalid("header_bytes", l.HeaderBytes, "at least 1, or 0 for no header")
	}
	status, err := statusOr(l.Status, http.StatusOK)
	if err != nil {
		return nil, err
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		takeBody(r)
		if l.HeaderBytes > 0 {
			w.Header().Set("X-Filler", string(bytes.Repeat(filler[:1], l.HeaderBytes)))
		}
		if l.Bytes > 0 {
			w.Header().Set("Content-Length", strconv.FormatInt(l.Bytes, 10))
		}
		w.WriteHeader(status)
		l.write(w, r)
	}), nil
}

var filler = bytes.Repeat([]byte("x"), 32<<10)

func (l Large) write(w http.ResponseWriter, r *http.Request) {
	for left := l.Bytes; (l.Bytes == 0 || left > 0) && r.Context().Err() == nil; {
		part := filler
		if l.Bytes > 0 {
			part = filler[:min(left, int64(len(filler)))]
		}
		n, err := w.Write(part)
		if err != nil { // the caller has enough
			return
		}
		left -= int64(n)
	}
}
