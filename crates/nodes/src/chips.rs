//! What a node's device plugin says of Ascend chips once a pod has them: which devices they really are.
//!
//! Source: MindCluster's device plugin. Until it has said so of a part, that part is taken for one that is
//! yet to be made.

use std::collections::BTreeSet;

use api::volcano::ASCEND_310P;
use api::volcano::chip_devices::chip_name;

/// Virtual groups of a chip.
const GROUPS: u32 = 4;
/// Numbers of virtual devices of a chip begin here.
const DEVICES_FROM: u32 = 100;

/// A part of a chip that is made.
#[derive(Clone, Copy, Debug)]
struct Made<'a> {
    chip: &'a str,
    device: u32,
    group: u32,
}

/// What a pod's `huawei.com/AscendReal` says, whose `huawei.com/npu-core` is `told`: of whole chips (`0,1`)
/// their names, of a part (`0-vir02_1c`) the virtual device that is made for it
/// (`Ascend310P-2c.1cpu-100-0_1`). `beside` is what other pods of the node have there. A part is in the
/// first virtual group of its chip that nobody has, or in the last one. `None` where `told` is neither.
pub fn real_chips<'a>(told: &str, beside: impl Iterator<Item = &'a str>) -> Option<String> {
    let Some((chip, template)) = told.split_once('-') else {
        let chips = told.split(',').map(|chip| chip.trim().parse::<u32>().ok());
        let names = chips.map(|chip| Some(chip_name(chip?)));
        return Some(names.collect::<Option<Vec<_>>>()?.join(","));
    };
    let size = size(template)?;
    let made: Vec<Made<'_>> = beside.filter_map(made).collect();
    let of_chip = made.iter().filter(|made| made.chip == chip);
    let devices: BTreeSet<u32> = of_chip.clone().map(|made| made.device).collect();
    let groups: BTreeSet<u32> = of_chip.map(|made| made.group).collect();
    let device = (DEVICES_FROM..).find(|it| !devices.contains(it))?;
    let group = (0..GROUPS).find(|it| !groups.contains(it));
    let group = group.unwrap_or(GROUPS - 1);
    Some(format!("{ASCEND_310P}-{size}-{device}-{chip}_{group}"))
}

/// A template as it is in names of devices: `vir04_4c_dvpp` is `4c.4cpu.dvpp`.
fn size(template: &str) -> Option<String> {
    let mut words = template.strip_prefix("vir")?.split('_');
    let cores: u32 = words.next()?.parse().ok()?;
    let mut size = format!("{cores}c");
    for word in words {
        size.push('.');
        match word.strip_suffix('c') {
            Some(cpus) => size.push_str(&format!("{cpus}cpu")),
            None => size.push_str(word),
        }
    }
    Some(size)
}

/// What the name of a virtual device says.
fn made(real: &str) -> Option<Made<'_>> {
    let (name, group) = real.rsplit_once('_')?;
    let mut words = name.rsplit('-');
    Some(Made {
        chip: words.next()?,
        device: words.next()?.parse().ok()?,
        group: group.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_a_device_of_its_own_in_a_group_of_its_own_while_there_is_one() {
        let mut beside: Vec<String> = Vec::new();
        for (told, expected) in [
            ("0-vir02_1c", "Ascend310P-2c.1cpu-100-0_0"),
            ("0-vir01", "Ascend310P-1c-101-0_1"),
            ("1-vir04_4c_dvpp", "Ascend310P-4c.4cpu.dvpp-100-1_0"),
            ("0-vir01", "Ascend310P-1c-102-0_2"),
            ("0-vir01", "Ascend310P-1c-103-0_3"),
            ("0-vir01", "Ascend310P-1c-104-0_3"),
            ("2,3", "Ascend310P-2,Ascend310P-3"),
        ] {
            let real = real_chips(told, beside.iter().map(String::as_str));
            assert_eq!(real.as_deref(), Some(expected), "{told}");
            beside.extend(real);
        }
        // What has ended leaves its device and its group to the next one.
        beside.remove(1);
        let real = real_chips("0-vir02", beside.iter().map(String::as_str));
        assert_eq!(real.as_deref(), Some("Ascend310P-2c-101-0_1"));
        for other in ["", "x", "0,x", "0-x", "0-vir", "0-virx_1c"] {
            assert_eq!(real_chips(other, std::iter::empty()), None, "{other}");
        }
    }
}
