//! Every kernel against its f64 reference, on both simulated cards or on the card under the supervisor's lock.
//!
//! Outputs are poisoned before each launch; shapes straddle the wave size. Tolerances are absolute and those of the seeds, or
//! tighter.

mod support;

mod activation;
mod attention16;
mod attention16_refused;
mod cast;
mod causal_mask;
mod declared;
mod elementwise;
mod flash_attention;
mod flash_attn_ext;
mod flash_shapes;
mod halves;
mod kv_replicate;
mod kv_types;
mod latent_kv;
mod map;
mod mask;
mod matmul;
mod matmul16;
mod matvec_q8;
mod mlp;
mod norm;
mod packs;
mod paged16;
mod paged_attention;
mod paged_wide16;
mod permute;
mod pool;
mod qk_matmul;
mod reduce;
mod rejections;
mod rope;
mod rope_kv;
mod sampling;
mod softmax;
mod strided;
mod views;
mod weighted_matmul;
mod weights;

#[test]
fn second_card() {
    rocmforge_testkit::on_every_card("second_card", &[]);
}
