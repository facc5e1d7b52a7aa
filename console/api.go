package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
)

// apiState answers GET /api/state.
func (k *Console) apiState(w http.ResponseWriter, r *http.Request) {
	q := asked(r)
	q.per = 100
	if text := r.URL.Query().Get("per"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > mostPerPage {
			writeJSON(w, http.StatusBadRequest, fault{fmt.Sprintf("console: per is not a number from 1 to %d", mostPerPage)})
			return
		}
		q.per = n
	}
	s := k.now()
	f := s.find(q)
	status := Status{
		At: instant(s.at), ShutDown: s.down, Conditions: s.counts, InFlight: s.inFlight, Waiting: s.waiting, Rate: s.rate, Budget: shared(s.rows),
		Total: f.total, Page: f.page, Pages: f.pages, Providers: make([]Provider, 0, len(f.rows)),
	}
	for _, r := range f.rows {
		status.Providers = append(status.Providers, k.provider(r))
	}
	writeJSON(w, http.StatusOK, status)
}

// apiProvider answers GET /api/providers/{slug}.
func (k *Console) apiProvider(w http.ResponseWriter, r *http.Request) {
	s := k.now()
	row := s.bySlug[r.PathValue("slug")]
	if row == nil {
		writeJSON(w, http.StatusNotFound, fault{"console: no such provider"})
		return
	}
	writeJSON(w, http.StatusOK, k.detail(instant(s.at), row))
}

// fault is what went wrong, as JSON.
type fault struct {
	Error string `json:"error"`
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	text, err := json.Marshal(v)
	if err != nil { // a float that is none: nothing in a State is
		http.Error(w, "console: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(text)
}
