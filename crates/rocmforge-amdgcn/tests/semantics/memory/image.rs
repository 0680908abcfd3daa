//! Images: samples, gathers, loads and stores against their definition, with every number of dimensions and every way to leave the image;
//! unwritten texels; and what descriptors and samplers may not ask for.

use super::*;
use crate::ARCH;
use crate::enc::Image;
use crate::rig::Done;
use rocmforge_amdgcn::{Arch, FaultKind, Status};

/// An image: the numbers of its dimensions in instructions and descriptors, its texels, and those that are no layer.
#[derive(Clone, Copy, Debug)]
struct Shape {
    instruction: u32,
    descriptor: u32,
    size: [u32; 3],
    space: usize,
}

const fn shape(instruction: u32, size: [u32; 3], space: usize) -> Shape {
    Shape {
        instruction,
        descriptor: instruction + 8,
        size,
        space,
    }
}

const SHAPES: [Shape; 5] = [
    shape(0, [19, 1, 1], 1),
    shape(1, [11, 7, 1], 2),
    shape(2, [5, 6, 4], 3),
    shape(4, [9, 1, 3], 1),
    shape(5, [6, 5, 3], 2),
];

impl Shape {
    fn layered(&self) -> bool {
        self.instruction >= 4
    }

    /// Coordinates of an address.
    fn count(&self) -> u32 {
        self.space as u32 + u32::from(self.layered())
    }

    /// Bytes from row to row, of texels of this many.
    fn row(&self, texel: u32) -> u32 {
        (self.size[0] * texel).next_multiple_of(256)
    }

    fn bytes(&self, texel: u32) -> usize {
        (self.row(texel) * self.size[1] * self.size[2]) as usize
    }

    fn place(&self, texel: u32, [x, y, z]: [u32; 3]) -> usize {
        ((z * self.size[1] + y) * self.row(texel) + x * texel) as usize
    }

    /// The eight words of its descriptor at [`DATA`].
    fn words(&self, format: u32, texel: u32, select: u32) -> [u32; 8] {
        let [width, height, depth] = self.size.map(|size| size - 1);
        let last = if self.descriptor < 10 {
            self.row(texel) / texel - 1
        } else {
            depth
        };
        let shift = if ARCH == Arch::Gfx1201 { 17 } else { 20 };
        [
            (DATA >> 8) as u32,
            (DATA >> 40) as u32 | format << shift | width << 30,
            width >> 2 | height << 14,
            self.descriptor << 28 | select,
            last,
            0,
            0,
            0,
        ]
    }
}

const XYZW: u32 = 4 | 5 << 3 | 6 << 6 | 7 << 9;
/// Of one part.
const X001: u32 = 4 | 1 << 9;

/// Runs an operation for 32 lanes, whose registers from `v2` on are the address and from `v20` on the data.
struct Run<'a> {
    name: &'a str,
    shape: Shape,
    addresses: u32,
    parts: u32,
    descriptor: [u32; 8],
    sampler: [u32; 4],
    lanes: Vec<Vec<u32>>,
    data: &'a [u8],
    unwritten: u64,
}

impl Run<'_> {
    fn launch(&self) -> Done {
        let mut asm = Asm::default();
        asm.prologue(self.addresses.max(1), 64, 16);
        for (n, word) in self.descriptor.into_iter().chain(self.sampler).enumerate() {
            asm.set(8 + n as u32, word);
        }
        let sample = !self.name.contains("load") && !self.name.contains("store");
        let fields = Image {
            data: 20,
            address: 2,
            addresses: self.addresses,
            descriptor: 8,
            sampler: if sample { 16 } else { 0 },
            dimensions: self.shape.instruction,
            parts: self.parts,
        };
        let store = self.name.contains("store");
        if store {
            // Data that tells lane and part.
            for n in 0..4 {
                let add = enc::code("v_add_nc_u32", Format::Vop2);
                asm.put(&[enc::vop2(add, 20 + n, int(n as i32 * 16), 1)]);
            }
        }
        asm.put(&enc::image(enc::code(self.name, Format::Image), sample, fields));
        let registers = if self.name.contains("gather") {
            4
        } else {
            self.parts.count_ones()
        };
        if !store {
            asm.store(20, registers, 0);
        }
        let record = |lane: &Vec<u32>| {
            let mut words = [0u32; 16];
            words[..lane.len()].copy_from_slice(lane);
            words
        };
        let input: Vec<u8> = self.lanes.iter().flat_map(record).flat_map(u32::to_le_bytes).collect();
        Launch {
            words: &asm.0,
            lanes: 32,
            input: &input,
            output: 16 * 32,
            data: self.data,
            unwritten: self.unwritten,
            ..Launch::default()
        }
        .launch()
    }
}

/// Texel `n` of a row of `size`, by the sampler's number for what is outside; `None` for the border.
fn clamped(mode: u32, n: i64, size: i64) -> Option<i64> {
    match mode {
        0 => Some(n.rem_euclid(size)),
        1 if n.rem_euclid(2 * size) < size => Some(n.rem_euclid(2 * size)),
        1 => Some(2 * size - 1 - n.rem_euclid(2 * size)),
        2 => Some(n.max(0).min(size - 1)),
        _ => (0 <= n && n < size).then_some(n),
    }
}

/// The texels of a linear filter and their weights, by the definition: positions have 8 bits behind the point.
fn around(shape: Shape, at: &[f32], mode: u32, unnormalised: bool, linear: bool) -> Vec<(f64, Option<[u32; 3]>)> {
    let mut all = vec![(1.0, Some([0; 3]))];
    for n in 0..shape.space {
        let scale = if unnormalised { 1.0 } else { f64::from(shape.size[n]) };
        // What is far away is at the same edge.
        let mut steps = (f64::from(at[n]) * scale * 256.0).round_ties_even().clamp(-1e12, 1e12);
        if linear {
            steps -= 128.0;
        }
        let first = (steps / 256.0).floor();
        let behind = if linear { steps / 256.0 - first } else { 0.0 };
        all = all
            .into_iter()
            .flat_map(|(weight, place)| {
                [(0, 1.0 - behind), (1, behind)].map(|(step, part)| {
                    let texel = clamped(mode, first as i64 + step, i64::from(shape.size[n]));
                    let place = place.zip(texel).map(|(mut place, texel)| {
                        place[n] = texel as u32;
                        place
                    });
                    (weight * part, place)
                })
            })
            .collect();
    }
    if shape.layered() {
        let last = f64::from(shape.size[2] - 1);
        let layer = f64::from(at[shape.space]).round_ties_even().max(0.0).min(last) as u32;
        for (_, place) in &mut all {
            if let Some(place) = place {
                place[2] = layer;
            }
        }
    }
    all.retain(|(weight, _)| *weight != 0.0);
    all
}

/// Random coordinates, some of them far away or no numbers, in texels or in widths.
fn coordinates(random: &mut Random, shape: Shape, unnormalised: bool, far: bool) -> Vec<f32> {
    let mut at: Vec<f32> = (0..shape.space)
        .map(|n| {
            let value = (random.next() % 4096) as f32 / 1024.0 - 1.5;
            match random.next() % 24 {
                0 if far => 1e30,
                1 if far => -1e7,
                2 if far => f32::INFINITY,
                3 => 0.5,
                _ if unnormalised => value * shape.size[n] as f32,
                _ => value,
            }
        })
        .collect();
    if shape.layered() {
        at.push((random.next() % 64) as f32 / 8.0 - 2.0);
    }
    at
}

fn float_texels(shape: Shape) -> Vec<u8> {
    let mut data = vec![0xee; shape.bytes(4)];
    for z in 0..shape.size[2] {
        for y in 0..shape.size[1] {
            for x in 0..shape.size[0] {
                let value = ((x * 37 + y * 101 + z * 59) % 127) as f32 * 0.37 - 20.0;
                data[shape.place(4, [x, y, z])..][..4].copy_from_slice(&value.to_le_bytes());
            }
        }
    }
    data
}

fn float_at(shape: Shape, data: &[u8], place: Option<[u32; 3]>) -> f64 {
    place.map_or(0.0, |place| {
        let at = shape.place(4, place);
        f64::from(f32::from_le_bytes([data[at], data[at + 1], data[at + 2], data[at + 3]]))
    })
}

#[test]
fn samples_are_what_their_definition_says() {
    let mut random = Random(0x7e87);
    for shape in SHAPES {
        let data = float_texels(shape);
        for mode in [0, 1, 2, 6] {
            for options in 0..4 {
                let (linear, unnormalised) = (options & 1 != 0, options & 2 != 0);
                if unnormalised && mode < 2 {
                    continue;
                }
                let lanes: Vec<Vec<f32>> = (0..32)
                    .map(|_| coordinates(&mut random, shape, unnormalised, mode >= 2))
                    .collect();
                // Gradients before and a level behind are not looked at: there is one level.
                for (name, gradients, level) in [
                    ("image_sample", 0, 0),
                    ("image_sample_lz", 0, 0),
                    ("image_sample_l", 0, 1),
                    ("image_sample_d", 2 * shape.space, 0),
                    ("image_sample_d_g16", 2 * shape.space.div_ceil(2), 0),
                ] {
                    let record = |at: &Vec<f32>| {
                        let mut words = vec![0x1234; gradients];
                        words.extend(at.iter().map(|at| at.to_bits()));
                        words.extend(vec![3f32.to_bits(); level]);
                        words
                    };
                    let filter = u32::from(linear);
                    let run = Run {
                        name,
                        shape,
                        addresses: shape.count() + (gradients + level) as u32,
                        parts: 0b1001,
                        descriptor: shape.words(22, 4, X001),
                        sampler: [
                            mode | mode << 3 | mode << 6 | u32::from(unnormalised) << 15,
                            0xfff << 12,
                            filter << 20 | filter << 22,
                            0,
                        ],
                        lanes: lanes.iter().map(record).collect(),
                        data: &data,
                        unwritten: 0,
                    };
                    let done = run.launch();
                    assert_eq!(done.outcome.status, Status::Completed, "{:?}", done.outcome.faults);
                    for (lane, at) in lanes.iter().enumerate() {
                        let texels = around(shape, at, mode, unnormalised, linear);
                        let model: f64 = (texels.iter())
                            .map(|&(weight, place)| weight * float_at(shape, &data, place))
                            .sum();
                        let ours = f32::from_bits(word(&done.output, 16 * lane));
                        let what = format!("{name} {shape:?}, mode {mode}, options {options}, at {at:?}");
                        assert_eq!(ours, model as f32, "{what}");
                        assert_eq!(f32::from_bits(word(&done.output, 16 * lane + 4)), 1.0, "{what}");
                    }
                }
            }
        }
    }
}

#[test]
fn gathers_give_four_texels_in_order() {
    let shape = SHAPES[1];
    let data = float_texels(shape);
    let mut random = Random(0x6a7);
    let lanes: Vec<Vec<f32>> = (0..32).map(|_| coordinates(&mut random, shape, true, false)).collect();
    let run = Run {
        name: "image_gather4_lz",
        shape,
        addresses: 2,
        parts: 1,
        descriptor: shape.words(22, 4, X001),
        sampler: [2 | 6 << 3 | 1 << 15, 0, 0, 2 << 30],
        lanes: lanes
            .iter()
            .map(|at| at.iter().map(|at| at.to_bits()).collect())
            .collect(),
        data: &data,
        unwritten: 0,
    };
    let done = run.launch();
    assert_eq!(done.outcome.status, Status::Completed, "{:?}", done.outcome.faults);
    for (lane, at) in lanes.iter().enumerate() {
        let first: Vec<i64> = at
            .iter()
            .map(|at| ((f64::from(*at) * 256.0).round_ties_even() / 256.0 - 0.5).floor() as i64)
            .collect();
        for (n, (right, below)) in [(0, 1), (1, 1), (1, 0), (0, 0)].into_iter().enumerate() {
            let x = clamped(2, first[0].saturating_add(right), 11);
            let y = clamped(6, first[1].saturating_add(below), 7);
            let place = x.zip(y).map(|(x, y)| [x as u32, y as u32, 0]);
            // The border is white.
            let model = place.map_or(1.0, |place| float_at(shape, &data, Some(place)));
            let ours = f32::from_bits(word(&done.output, 16 * lane + 4 * n));
            assert_eq!(f64::from(ours), model, "lane {lane} at {at:?}, texel {n}");
        }
    }
}

/// Whole coordinates of a lane: most inside.
fn whole(shape: Shape, lane: u32) -> [u32; 3] {
    let outside = |n: u32| if lane % 7 == n { u32::MAX - lane } else { 0 };
    let [w, h, d] = shape.size;
    let mut place = [lane % (w + 1), lane / 2 % (h + 1), lane / 3 % (d + 1)];
    place[0] = place[0].wrapping_add(outside(5));
    if shape.size[1] == 1 {
        place[1] = 0;
    }
    if shape.count() == shape.space as u32 && shape.space < 3 {
        place[2] = 0;
    }
    place
}

/// The registers of whole coordinates.
fn registers(shape: Shape, place: [u32; 3], level: u32) -> Vec<u32> {
    let mut all = place[..shape.space].to_vec();
    if shape.layered() {
        all.push(place[2]);
    }
    all.resize(all.len() + level as usize, 0);
    all
}

#[test]
fn loads_and_stores_stay_inside() {
    for shape in SHAPES {
        // 8 bits, four parts.
        let mut data = vec![0xee; shape.bytes(4)];
        for (n, byte) in data.iter_mut().enumerate() {
            *byte = (n * 37 % 251) as u8;
        }
        let places: Vec<[u32; 3]> = (0..32).map(|lane| whole(shape, lane)).collect();
        let inside = |place: &[u32; 3]| place.iter().zip(shape.size).all(|(place, size)| *place < size);
        for (name, level) in [
            ("image_load", 0),
            ("image_load_mip", 1),
            ("image_store", 0),
            ("image_store_mip", 1),
        ] {
            for parts in [0b1111, 0b0011, 0b0001] {
                let run = Run {
                    name,
                    shape,
                    addresses: shape.count() + level,
                    parts,
                    descriptor: shape.words(46, 4, XYZW),
                    sampler: [0; 4],
                    lanes: places.iter().map(|place| registers(shape, *place, level)).collect(),
                    data: &data,
                    unwritten: 0,
                };
                let done = run.launch();
                let what = format!("{name} {shape:?} {parts:#b}");
                assert_eq!(
                    done.outcome.status,
                    Status::Completed,
                    "{what}: {:?}",
                    done.outcome.faults
                );
                let mut memory = data.clone();
                for (lane, place) in places.iter().enumerate() {
                    let at = shape.place(4, place.map(|place| place.min(99)));
                    for n in 0..parts.count_ones() as usize {
                        if name.contains("load") {
                            let model = if inside(place) { u32::from(data[at + n]) } else { 0 };
                            assert_eq!(word(&done.output, 16 * lane + 4 * n), model, "{what}, lane {lane}");
                        }
                    }
                    if name.contains("store") && inside(place) {
                        for n in 0..4 {
                            // What is not given is 0, on gfx1201 the first value.
                            let given = n < parts.count_ones() as usize;
                            let value = match (given, ARCH) {
                                (true, _) => lane + 16 * n,
                                (false, Arch::Gfx1201) => lane,
                                (false, Arch::Gfx1100) => 0,
                            };
                            memory[at + n] = value as u8;
                        }
                    }
                }
                // Lanes that store to one place: the last one stays.
                assert!(done.data == memory || name.contains("store"), "{what}: memory differs");
                if name.contains("store") {
                    assert_eq!(done.data, memory, "{what}");
                }
            }
        }
    }
}

/// The only fault of a sample in the middle of a texel, or between texels.
fn fault_of(
    change: impl Fn(&mut [u32; 8], &mut [u32; 4]),
    at: [f32; 2],
    unwritten: u64,
) -> Option<(FaultKind, String)> {
    let shape = SHAPES[1];
    let data = float_texels(shape);
    let (mut descriptor, mut sampler) = (shape.words(22, 4, X001), [2 | 2 << 3 | 2 << 6 | 1 << 15, 0, 5 << 20, 0]);
    change(&mut descriptor, &mut sampler);
    let run = Run {
        name: "image_sample_lz",
        shape,
        addresses: 2,
        parts: 1,
        descriptor,
        sampler,
        lanes: vec![at.map(f32::to_bits).to_vec(); 32],
        data: &data[..data.len() - unwritten as usize],
        unwritten,
    };
    let done = run.launch();
    assert!(done.outcome.faults.len() <= 1, "{:?}", done.outcome.faults);
    let fault = done.outcome.faults.first()?;
    Some((fault.kind, fault.note.clone()))
}

#[test]
fn descriptors_that_are_not_modelled_are_faults() {
    assert_eq!(fault_of(|_, _| {}, [3.5, 2.5], 0), None);
    let gfx12 = ARCH == Arch::Gfx1201;
    let format = if gfx12 { 17 } else { 20 };
    // Word, what is changed, and why it is refused.
    let image: &[(usize, u32, &str)] = &[
        (3, 8 << 28, "TYPE"),
        (3, 1 << 28, "other dimensions"),
        (3, 2 << 28, "cubes"),
        (3, 1 << 20, "SW_MODE"),
        (3, if gfx12 { 1 << 15 } else { 1 << 16 }, "levels"),
        (1, 1 << if gfx12 { 12 } else { 16 }, "levels"),
        (1, 1 << if gfx12 { 8 } else { 13 }, "option"),
        (1, 8 << format, "FORMAT"),
        (4, 1 << 16, "layers"),
        (4, 0x3f, "PITCH"),
        (5, 1, "option"),
        (6, 1 << 20, "option"),
        (7, 1, "option"),
    ];
    for &(word, bits, reason) in image {
        let (kind, note) = fault_of(|image, _| image[word] ^= bits, [3.5, 2.5], 0).expect(reason);
        assert_eq!(kind, FaultKind::BufferDescriptor, "{reason}");
        assert!(note.contains(reason), "{note}, for {reason}");
    }
    let sampler: &[(usize, u32, &str)] = &[
        (0, 2, "wrap around"),
        (0, 1, "CLAMP"),
        (0, 6, "CLAMP"),
        (0, 1 << 9, "anisotropy"),
        (0, 1 << 27, "option"),
        (2, 1 << 20, "filter"),
        (2, 2 << 20, "filter"),
        (2, 1 << 24, "filter"),
        (2, 1 << 26, "filter"),
        (2, 1, "LOD_BIAS"),
        (3, 3 << 30, "BORDER_COLOR_TYPE"),
        (3, 1 << 20, "BORDER_COLOR_PTR"),
    ];
    for &(word, bits, reason) in sampler {
        let (kind, note) = fault_of(|_, sampler| sampler[word] ^= bits, [3.5, 2.5], 0).expect(reason);
        assert_eq!(kind, FaultKind::BufferDescriptor, "{reason}");
        assert!(note.contains(reason), "{note}, for {reason}");
    }
    let integers = fault_of(|image, _| image[1] ^= (20 ^ 22) << format, [3.5, 2.5], 0);
    assert!(integers.is_some_and(|(_, note)| note.contains("a linear filter of integers")));
}

/// Nobody has written the last row. Only a filter that gives one of its texels a weight reads it.
#[test]
fn texels_that_nobody_has_written_are_followed() {
    let nothing = |_: &mut [u32; 8], _: &mut [u32; 4]| {};
    assert_eq!(fault_of(nothing, [3.5, 5.5], 256), None);
    let kind = fault_of(nothing, [3.5, 5.75], 256).map(|(kind, _)| kind);
    assert_eq!(kind, Some(FaultKind::UninitialisedGlobal));
}
