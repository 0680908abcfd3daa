//! Decoder and interpreter of RDNA3 (gfx1100) machine code, with memory checks.
