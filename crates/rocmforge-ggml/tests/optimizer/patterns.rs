//! Each pass on the smallest graph that it is for.
