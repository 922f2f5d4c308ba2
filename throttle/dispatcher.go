package throttle

import "context"

// A Dispatcher carries released jobs to workers. Package worker has one on asynq.
type Dispatcher interface {
	// Dispatch hands over parcels of one pool, all or none as far as it can tell. It
	// must be idempotent by Parcel.ID: a parcel that was handed over already is a
	// success. It is called from several goroutines.
	Dispatch(ctx context.Context, parcels []Parcel) error
	// Alive tells whether parcels of a round are still on their way in a pool, so
	// that jobs nobody has departed yet are not given out a second time.
	Alive(ctx context.Context, round, pool string) (bool, error)
}
