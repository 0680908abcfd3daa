//! Attention as a user wants it: configuration, shapes, masks and the choice of kernel.
