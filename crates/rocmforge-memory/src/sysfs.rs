//! What Linux says about GPUs, found without HIP. The root is injectable, so that fixture trees can be read.
