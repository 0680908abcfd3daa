use crate::support::{SIZES, device};
use rocmforge_kernels::reference;
use rocmforge_testkit::data::rng;

#[test]
fn NAME_at_every_length_and_in_place() {
    let d = device();
    for n in SIZES {
        let x = rng(n as u64).vec_in(n, -4.0, 4.0);
        let expected = reference::NAME(&x, 1.5);
        let (input, y) = (d.up(&x), d.out(n));
        d.kernels.NAME(d.stream(), &input, &y, 1.5).unwrap();
        d.close(&y, &expected, &[n], 1e-6);
        d.kernels.NAME(d.stream(), &input, &input, 1.5).unwrap();
        d.close(&input, &expected, &[n], 1e-6);
    }
}

#[test]
fn NAME_refuses_a_factor_that_is_not_finite() {
    let d = device();
    let (x, y) = (d.up(&[1.0; 4]), d.out(4));
    let error = d.kernels.NAME(d.stream(), &x, &y, f32::NAN).unwrap_err().to_string();
    assert!(error.contains("finite"), "{error}");
}
