//! Counters of products of packed weights: each weight is read once, in whole segments.

use crate::counted;
use rocmforge_kernels::WeightType;
use rocmforge_sim::counters::Class;
use std::error::Error;

#[test]
fn packed_products_read_each_weight_once_in_whole_segments() -> Result<(), Box<dyn Error>> {
    for ty in WeightType::ALL.into_iter().filter(|ty| ty.is_packable()) {
        let [m, n, k] = [1, 512, 4096];
        let launches = counted(|device| device.packed_product(ty, [m, n, k]))?;
        let launch = launches.last().ok_or("no launch")?;
        assert!(launch.kernel.ends_with("_row"), "{}", launch.kernel);
        let c = &launch.counters;
        // Each workgroup reads the activations once.
        let input = (c.workgroups as usize * k * 4) as f64;
        let weights = (n * k / ty.block_len() * ty.block_bytes()) as f64;
        // The scales of 32 lanes are half a segment or less; q6_K has two such parts to 840 bytes, q2_K two to 336 and q3_K two to 440.
        assert!(
            (c.loads.segments * 128) as f64 <= 1.25 * (weights + input),
            "{ty}: {:?}",
            c.loads
        );
        // Eight lanes share the scales of a K-quant: each asks for them, memory gives them once.
        if ty.block_len() == 32 {
            assert!(c.loads.bytes as f64 <= 1.02 * (weights + input), "{ty}: {:?}", c.loads);
        }
        assert_eq!((c.lds.conflicts, c.scratch_bytes, c.of(Class::Flat)), (0, 0, 0), "{ty}");
    }
    Ok(())
}
