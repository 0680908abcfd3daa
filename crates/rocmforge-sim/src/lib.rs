//! A simulated Radeon: the HIP API on top of an interpreter of real gfx1100 machine code.
