package provider

import "net/http"

// Redirect sends every call elsewhere.
type Redirect struct {
	To     string // a URL or a path; empty means back to the same URL, without end
	Status int    // 300 to 399; 0 means 302
}

// Handler makes the handler.
func (d Redirect) Handler() (http.Handler, error) {
	status := d.Status
	if status == 0 {
		status = http.StatusFound
	}
	if status < 300 || status > 399 {
		return nil, invalid("status", status, "300 to 399, or 0 for 302")
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		to := d.To
		if to == "" {
			to = r.URL.RequestURI()
		}
		w.Header().Set("Location", to)
		w.WriteHeader(status)
	}), nil
}
