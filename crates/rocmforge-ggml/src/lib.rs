//! A GGML-style graph: descriptors, ops, shape inference, validation, executor, CPU and HIP backends.
