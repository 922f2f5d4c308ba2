package main

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/weirq/weir/throttle"
)

// pageFlags ask for part of a list.
type pageFlags struct {
	limit  int
	cursor string
}

func (f *pageFlags) register(set *pflag.FlagSet) {
	set.IntVar(&f.limit, "limit", throttle.DefaultPage, fmt.Sprintf("`N` to list, 1 to %d", throttle.MaxPage))
	set.StringVar(&f.cursor, "cursor", "", "`CURSOR` to go on from, as the list before ended with")
}

func (f *pageFlags) check() error {
	if f.limit < 1 || f.limit > throttle.MaxPage {
		return fmt.Errorf("--limit %d is not allowed: want a whole number from 1 to %d", f.limit, throttle.MaxPage)
	}
	return nil
}

func (f *pageFlags) page() throttle.Page { return throttle.Page{Limit: f.limit, Cursor: f.cursor} }

// next prints where a list goes on, unless that was its end.
func (c *conn) next(cursor string) error {
	switch {
	case cursor == "":
		return nil
	case c.json:
		return c.object(struct {
			Next string `json:"next"`
		}{cursor})
	}
	return c.line("to go on: --cursor %s", cursor)
}

// asFlag makes a refusal of one of some fields name the flag that gives it.
func asFlag(err error, fields ...string) error {
	var refused *throttle.InvalidError
	if !errors.As(err, &refused) {
		return err
	}
	for _, field := range fields {
		if refused.Field == field {
			return calledArgument("--"+field, refused)
		}
	}
	return err
}

// pageHelp tells of lists in --json.
const pageHelp = `A list that may go on ends with the cursor to go on from, for --cursor; in --json that is
a last line with nothing but "next".`
