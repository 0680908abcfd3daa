//! Codebooks of the formats `iq1_*`, `iq2_*` and `iq3_*`: groups of 8 or 4 magnitudes, named by a number in the block.
//!
//! The codebooks are a part of the formats' definition, as the E2M1 values are of `mxfp4`: no rule makes them. The files in
//! `grids/` hold the place of each magnitude in the list of its format's levels, low bits first: 2 bits where there are three
//! levels, 4 bits where there are eight. `tests/vectors/make_vectors.py` makes the files.

/// Magnitudes of the three codebooks of `iq2_*`.
const LEVELS_2: [i8; 3] = [8, 25, 43];

pub(super) static IQ2_XXS: [[i8; 8]; 256] = of_two_bits(include_bytes!("grids/iq2_xxs.bin"), LEVELS_2);
pub(super) static IQ2_XS: [[i8; 8]; 512] = of_two_bits(include_bytes!("grids/iq2_xs.bin"), LEVELS_2);
pub(super) static IQ2_S: [[i8; 8]; 1024] = of_two_bits(include_bytes!("grids/iq2_s.bin"), LEVELS_2);
pub(super) static IQ3_XXS: [[i8; 4]; 256] =
    of_four_bits(include_bytes!("grids/iq3_xxs.bin"), [4, 12, 20, 28, 36, 44, 52, 62]);
pub(super) static IQ3_S: [[i8; 4]; 512] = of_four_bits(include_bytes!("grids/iq3_s.bin"), [1, 3, 5, 7, 9, 11, 13, 15]);
/// Both formats `iq1_s` and `iq1_m`. The signs are in the codebook.
pub(super) static IQ1: [[i8; 8]; 2048] = of_two_bits(include_bytes!("grids/iq1.bin"), [-1, 0, 1]);

const fn of_two_bits<const BYTES: usize, const ROWS: usize>(packed: &[u8; BYTES], levels: [i8; 3]) -> [[i8; 8]; ROWS] {
    assert!(BYTES == 2 * ROWS);
    let mut rows = [[0; 8]; ROWS];
    let mut at = 0;
    while at < 8 * ROWS {
        let place = packed[at / 4] >> (2 * (at % 4)) & 3;
        rows[at / 8][at % 8] = levels[place as usize];
        at += 1;
    }
    rows
}

const fn of_four_bits<const BYTES: usize, const ROWS: usize>(packed: &[u8; BYTES], levels: [i8; 8]) -> [[i8; 4]; ROWS] {
    assert!(BYTES == 2 * ROWS);
    let mut rows = [[0; 4]; ROWS];
    let mut at = 0;
    while at < 4 * ROWS {
        let place = packed[at / 2] >> (4 * (at % 2)) & 15;
        rows[at / 4][at % 4] = levels[place as usize];
        at += 1;
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_group_stands_twice_and_every_level_is_used() {
        fn check<const N: usize>(grid: &[[i8; N]], levels: &[i8]) {
            let mut sorted = grid.to_vec();
            sorted.sort_unstable();
            sorted.dedup();
            assert_eq!(sorted.len(), grid.len());
            assert!(levels.iter().all(|level| grid.as_flattened().contains(level)));
        }
        check(&IQ2_XXS, &LEVELS_2);
        check(&IQ2_XS, &LEVELS_2);
        check(&IQ2_S, &LEVELS_2);
        check(&IQ3_XXS, &[4, 12, 20, 28, 36, 44, 52, 62]);
        check(&IQ3_S, &[1, 3, 5, 7, 9, 11, 13, 15]);
        check(&IQ1, &[-1, 0, 1]);
    }
}
