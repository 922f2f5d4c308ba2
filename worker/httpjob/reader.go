package httpjob

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/weirq/weir/throttle"
)

// DefaultMaxLine is the longest line of a [Reader], in bytes, where none is
// given: room for any job of the default size. At worst each byte of its body and
// headers is written as an escape of six.
const DefaultMaxLine = 8 * throttle.DefaultMaxJobSize

// A Reader reads jobs from text with one JSON object a line:
//
//	{"id", "key", "url", "method", "headers", "success", "redirects",
//	 "cost", "max_attempts", "priority", "delay" | "not_before", "ttl", "deadline",
//	 "dedupe": {"name" | "content", "while_waiting", "window", "replace",
//	            "debounce", "max_debounce"},
//	 "body" | "body_base64" | "payload"}
//
// Every field may be left out if the defaults have it, and null means left out.
// body is text; body_base64 is any bytes; payload is any JSON, null included,
// and is sent as it stands in the line, byte for byte, with the Content-Type
// application/json if no other is given. success is a text of statuses such as
// "200-299,304". delay, ttl and the spans in dedupe are
// durations such as "1.5s"; not_before and deadline are times in RFC 3339. A line
// that has delay or not_before takes neither from the defaults, and its dedupe
// replaces theirs as a whole. A ttl counts from the enqueue and must be longer than the delay. Other fields are ignored and remembered, but in dedupe
// refused; names count to the letter, and of a name that is there twice the last one
// counts. Blank lines are skipped; a byte order mark, CR before the line's end and a
// last line without an end are fine.
//
// A Reader is not safe for concurrent use.
type Reader struct {
	in       *bufio.Reader
	defaults Defaults
	maxLine  int

	buf     []byte
	line    int
	offset  int64
	unknown []string
	err     error // what ended the reading
}

// A LineError refuses one line; the lines after it can still be read. It matches
// throttle.ErrInvalid.
type LineError struct {
	Line   int // counted from 1
	Column int // in bytes from 1; 0 means the line as a whole
	Err    error
}

func (e *LineError) Error() string {
	if e.Column > 0 {
		return fmt.Sprintf("line %d, column %d: %v", e.Line, e.Column, e.Err)
	}
	return fmt.Sprintf("line %d: %v", e.Line, e.Err)
}

// Unwrap gives what is wrong with the line.
func (e *LineError) Unwrap() error { return e.Err }

// Is makes errors.Is(err, throttle.ErrInvalid) true.
func (e *LineError) Is(target error) bool { return target == throttle.ErrInvalid }

// NewReader reads jobs from r. A line of more than maxLine bytes is refused
// without being held in memory; 0 means [DefaultMaxLine].
func NewReader(r io.Reader, defaults Defaults, maxLine int) *Reader {
	if maxLine <= 0 {
		maxLine = DefaultMaxLine
	}
	return &Reader{in: bufio.NewReaderSize(r, 64<<10), defaults: defaults, maxLine: maxLine}
}

// Next gives the job of the next line that is not blank, valid and with an id. A
// bad line is a [*LineError], after which
// Next goes on with the following line. At the end it is io.EOF; any other error
// is that of the underlying reader, and ends the reading.
func (r *Reader) Next() (throttle.Job, error) {
	for r.err == nil {
		line, err := r.readLine()
		if errors.Is(err, errTooLong) {
			return throttle.Job{}, &LineError{Line: r.line, Err: fmt.Errorf("longer than %d bytes", r.maxLine)}
		}
		if err != nil {
			r.err = err
			break
		}
		if len(bytes.Trim(line, " \t\r")) == 0 {
			continue
		}
		j, fault := decode(line, r.defaults, r.ignore)
		if fault != nil {
			return throttle.Job{}, &LineError{Line: r.line, Column: fault.column, Err: fault.err}
		}
		return j, nil
	}
	return throttle.Job{}, r.err
}

// Line is the number of the line that Next gave last, from 1.
func (r *Reader) Line() int { return r.line }

// Offset is the number of bytes up to the end of that line.
func (r *Reader) Offset() int64 { return r.offset }

// Unknown names the ignored fields that were seen so far, sorted; the first
// maxUnknown of them, if there are more.
func (r *Reader) Unknown() []string { return slices.Sorted(slices.Values(r.unknown)) }

// maxUnknown bounds what a file of ever new names costs.
const maxUnknown = 20

func (r *Reader) ignore(name string) {
	name = clip(name)
	if len(r.unknown) < maxUnknown && !slices.Contains(r.unknown, name) {
		r.unknown = append(r.unknown, name)
	}
}

var errTooLong = errors.New("line too long")

var byteOrderMark = []byte("\xef\xbb\xbf")

// readLine gives the next line without its end. It is valid until the next call.
// Of a line that is too long it keeps nothing.
func (r *Reader) readLine() ([]byte, error) {
	r.buf = r.buf[:0]
	length := 0
	for {
		part, err := r.in.ReadSlice('\n')
		r.offset += int64(len(part))
		length += len(part)
		if length <= r.maxLine+len(byteOrderMark)+len("\r\n") {
			r.buf = append(r.buf, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if errors.Is(err, io.EOF) && length > 0 {
			err = nil
		}
		if err != nil {
			return nil, err
		}
		break
	}
	r.line++
	if length > len(r.buf) {
		return nil, errTooLong
	}
	line := bytes.TrimSuffix(bytes.TrimSuffix(r.buf, []byte("\n")), []byte("\r"))
	if r.line == 1 {
		line = bytes.TrimPrefix(line, byteOrderMark)
	}
	if len(line) > r.maxLine {
		return nil, errTooLong
	}
	return line, nil
}
