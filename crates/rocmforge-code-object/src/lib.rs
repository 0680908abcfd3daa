//! What a compiled GPU kernel says of itself: AMD code object notes read into one KernelMeta.
