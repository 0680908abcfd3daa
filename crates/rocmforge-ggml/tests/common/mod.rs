//! Parts that several test targets share: random graphs, their reference in f64, and weights.
#![allow(dead_code)] // each test target uses its own part

pub(crate) mod latent;
pub(crate) mod random_graph;
pub(crate) mod reference;
pub(crate) mod weights;
