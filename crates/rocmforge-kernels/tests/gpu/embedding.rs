//! Embedding lookup.

use crate::support::device;
use rocmforge_testkit::data::rng;

#[test]
fn an_id_beyond_the_table_reads_nothing_and_gives_nan() {
    let d = device();
    let table = rng(1).vec(4 * 40);
    let (t, i, y) = (d.up(&table), d.ids(&[1, 4, u32::MAX, 3]), d.out(160));
    d.kernels.get_rows(d.stream(), &t, &i, &y, 4, 40).unwrap();
    let y = d.get(&y);
    assert_eq!(y[..40], table[40..80]);
    assert!(
        y[40..120]
            .iter()
            .all(|v| v.is_nan() && v.to_bits() != rocmforge_testkit::data::POISON.to_bits())
    );
    assert_eq!(y[120..], table[120..]);
}
