//! Operations of LDS alone: counters, addresses by lane, conditional exchanges.

use super::*;

/// `s_mov_b32 m0, literal`.
fn with_m0(value: u32, instruction: [u32; 2]) -> Vec<u32> {
    [vec![enc::sop1(0, enc::M0, LITERAL), value], instruction.to_vec()].concat()
}

/// Counters: the number of active lanes goes to or comes from a word at `m0` plus offset, whose old value all get.
#[test]
fn counters_of_lanes() {
    for (name, sign) in [("ds_append", 1), ("ds_consume", u32::MAX)] {
        let code = enc::code(name, Format::Ds);
        let words = with_m0(64, enc::ds(code, RESULT, 0, [0, 0], 40));
        let case = cases(Space::Lds, 4, 4, false, true);
        for exec in EXECS {
            let model = |x: &mut Access| {
                let step = x.exec.count_ones().wrapping_mul(sign);
                let now = word(x.memory, 104);
                if x.lane == x.exec.trailing_zeros() as usize {
                    x.dst[0] = now;
                    x.put_words(104, &[now.wrapping_add(step)]);
                } else {
                    // The first lane has counted for all.
                    x.dst[0] = now.wrapping_sub(step);
                }
            };
            check(&words, Space::Lds, &case, exec, same, &model, name);
        }
    }
}

/// Addresses of four bytes for each lane, from `m0` or a scalar base on.
#[test]
fn addresses_by_lane() {
    let case = cases(Space::Lds, 4, 4, false, true);
    for exec in EXECS {
        for (space, name) in [
            (Space::Lds, "ds_load_addtid_b32"),
            (Space::Lds, "ds_store_addtid_b32"),
            (Space::GlobalBase, "global_load_addtid_b32"),
            (Space::GlobalBase, "global_store_addtid_b32"),
        ] {
            let loads = name.contains("load");
            let (dst, data) = if loads { (RESULT, 0) } else { (0, FIRST) };
            let code = enc::code(name, space.format());
            let words = match space {
                Space::Lds => with_m0(256, enc::ds(code, dst, 0, [data, 0], 44)),
                _ => enc::flat(2, code, dst, None, data, 6, 300, false),
            };
            let model = |x: &mut Access| {
                x.at = 300 + 4 * x.lane;
                if loads {
                    x.words(1)
                } else {
                    x.put_words(x.at, &[x.data[0]])
                }
            };
            check(&words, space, &case, exec, same, &model, name);
        }
    }
}

/// Two words are read, and each is written where its data has the sign bit, without that bit.
#[test]
fn conditional_exchanges() {
    let code = enc::code("ds_condxchg32_rtn_b64", Format::Ds);
    let words = enc::ds(code, RESULT, ADDRESS, [FIRST, 0], Space::Lds.offset() as u32);
    let case = cases(Space::Lds, 8, 8, true, true);
    for exec in EXECS {
        let model = |x: &mut Access| {
            for n in 0..2 {
                let at = x.at + 4 * n;
                x.words_at(at, n, 1);
                if x.data[n] >> 31 == 1 {
                    x.put_words(at, &[x.data[n] & 0x7fff_ffff]);
                }
            }
        };
        check(&words, Space::Lds, &case, exec, same, &model, "ds_condxchg32_rtn_b64");
    }
}
