//! Optimizer: every pass on random graphs that hold its patterns and what is nearly one of them, and on graphs of models.

mod experts;
mod latent;
mod patterns;
mod proof;
mod random;
