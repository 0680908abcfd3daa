//! Counters of products of 16-bit floats: share of the matrix unit, bank conflicts, segments of memory.

use crate::counted_on;
use rocmforge_kernels::Half;
use rocmforge_sim::Arch;
use rocmforge_sim::counters::{Class, Counters};
use std::error::Error;

fn product(arch: Arch, ty: Half, shape: [usize; 3]) -> Result<(Counters, u32), Box<dyn Error>> {
    let launches = counted_on(arch, |device| device.product16(ty, false, shape))?;
    let launch = launches.last().ok_or("no launch")?;
    Ok((launch.counters, launch.occupancy.waves_per_simd))
}

/// Of the vector instructions of the inner loop, at least.
const SHARE_OF_WMMA: f64 = 0.5;

#[test]
fn tiles_keep_the_matrix_unit_busy() -> Result<(), Box<dyn Error>> {
    let [m, n, k] = [256, 128, 256];
    for (arch, ty) in [Arch::Gfx1100, Arch::Gfx1201]
        .into_iter()
        .flat_map(|arch| [(arch, Half::F16), (arch, Half::Bf16)])
    {
        let (once, waves) = product(arch, ty, [m, n, k])?;
        let (twice, _) = product(arch, ty, [m, n, 2 * k])?;
        // What the second half of k adds is the inner loop.
        let inner = |count: fn(&Counters) -> u64| count(&twice) - count(&once);
        let wmma = inner(|c| c.of(Class::Wmma));
        let vector = inner(|c| c.of(Class::Valu) + c.of(Class::Vopd) + c.of(Class::Trans) + c.of(Class::Wmma));
        let (lds, total) = (inner(|c| c.of(Class::Lds)), inner(Counters::total));
        println!("{arch} {ty:?}: of {total} instructions {vector} vector, {wmma} WMMA, {lds} LDS");
        assert_eq!(wmma, (m * n * k / 4096) as u64, "{arch} {ty:?}");
        assert_eq!(inner(|c| c.lds.conflicts), 0, "{arch} {ty:?}");
        assert_eq!(
            (twice.scratch_bytes, twice.of(Class::Flat), waves),
            (0, 0, 4),
            "{arch} {ty:?}"
        );
        // Tiles of 128 x 64: a is read n / 64 times, b m / 128 times.
        let bytes = 2 * k * (m * n / 64 + n * m / 128);
        assert_eq!(inner(|c| c.loads.bytes), bytes as u64, "{arch} {ty:?}");
        // 32 of k are half a segment.
        assert_eq!(128 * inner(|c| c.loads.segments), 2 * bytes as u64, "{arch} {ty:?}");
        assert!(
            wmma as f64 >= SHARE_OF_WMMA * vector as f64,
            "{arch} {ty:?}: {wmma} of {vector}"
        );
    }
    Ok(())
}

#[test]
fn few_rows_read_whole_segments() -> Result<(), Box<dyn Error>> {
    for arch in [Arch::Gfx1100, Arch::Gfx1201] {
        for m in [1, 2, 4, 8] {
            let [n, k] = [512, 4096];
            let (c, waves) = product(arch, Half::F16, [m, n, k])?;
            // b once; two rows of it share what is read of a, which is in a cache.
            let bytes = 2 * k * (n + n / 2 * m);
            assert_eq!(c.loads.bytes, bytes as u64, "{arch}, {m} rows");
            assert_eq!(128 * c.loads.segments, bytes as u64, "{arch}, {m} rows");
            assert_eq!((c.lds.conflicts, c.scratch_bytes, c.of(Class::Flat)), (0, 0, 0));
            assert!(waves >= 8, "{arch}, {m} rows: {waves} waves");
        }
    }
    Ok(())
}
