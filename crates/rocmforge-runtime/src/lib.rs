//! A safe HIP runtime: backend, streams, events, buffers, modules and checked launches over any HIP provider.
