//! Slices of datasets and objects.

use std::sync::Arc;

use tercet::Container;
use tercet::core::num::saturating_usize;
use tercet::core::tensor::IndexSlice;
use tercet::core::{Progress, Tensor};
use tercet::plot::{self, Axis, Plot};
use tercet::raster::Raster;
use tercet::tgm::Message;

use super::{Files, OrMessage as _, check, lock, stamp};
use crate::text::safe;
use crate::tree::Item;
use crate::views::{ArrayInfo, AxisInfo, Picture};

impl Files {
    pub(super) fn axes(&self, item: &Item) -> Result<ArrayInfo, String> {
        match (item, self.container(item.path())?) {
            (Item::Dataset { name, .. }, Container::Tet(file)) => {
                let dataset = file.dataset(name).or_message()?;
                let axis = |(axis, &size): (usize, &u64)| AxisInfo {
                    name: dataset.axis_name(axis).map_or_else(|| format!("axis {axis}"), safe),
                    size,
                    // Damaged coordinates are as good as none.
                    coordinates: dataset.readable_coordinates(axis).ok().flatten(),
                };
                let axes = dataset.shape().iter().enumerate().map(axis).collect();
                Ok(ArrayInfo { title: safe(name), axes })
            }
            (Item::Object { message, object, .. }, Container::Tgm(file)) => {
                let opened = file.message(*message).or_message()?;
                let found = opened.object(*object).or_message()?;
                let axis = |(axis, &size): (usize, &u64)| AxisInfo {
                    name: format!("axis {axis}"),
                    size,
                    coordinates: None,
                };
                let axes = found.descriptor().shape.iter().enumerate().map(axis).collect();
                Ok(ArrayInfo { title: object_title(&opened, *object), axes })
            }
            _ => Err("not an array".to_owned()),
        }
    }

    /// A slice with one or two axes, as means of blocks if it is large.
    pub(super) fn slice(
        &self,
        item: &Item,
        fixed: &[(usize, u64)],
        plane: &[usize],
        most: u64,
        progress: &dyn Progress,
    ) -> Result<Picture, String> {
        match (item, self.container(item.path())?) {
            (Item::Dataset { name, .. }, Container::Tet(file)) => {
                let dataset = file.dataset(name).or_message()?;
                if dataset.shape().contains(&0) {
                    return Ok(Picture::Text("no values: an axis has no positions".to_owned()));
                }
                let mut select = dataset.select().with_progress(progress);
                for &(axis, position) in fixed {
                    select = select.isel(axis, position).or_message()?;
                }
                if plane.is_empty() {
                    let raster = Raster::from_tet(&select, &[]);
                    check(progress)?;
                    return Ok(value(&raster.or_message()?));
                }
                let plot = plot::from_tet(&select, most);
                check(progress)?;
                Ok(picture(plot.or_message()?))
            }
            (Item::Object { message, object, .. }, Container::Tgm(file)) => {
                let opened = file.message(*message).or_message()?;
                let tensor = self.tensor(item, &opened, *object)?;
                check(progress)?;
                if tensor.shape().contains(&0) {
                    return Ok(Picture::Text("no values: an axis has no positions".to_owned()));
                }
                let slice = |&(axis, position): &(usize, u64)| {
                    let start = Some(i64::try_from(position).unwrap_or(i64::MAX));
                    (axis, IndexSlice { start, is_single: true, ..IndexSlice::FULL })
                };
                let slices: Vec<_> = fixed.iter().map(slice).collect();
                let raster = Raster::from_tensor(&tensor, &slices, &[most, most])?;
                let extents = tensor.shape().to_vec();
                let axis = |axis: usize| Axis::new(&format!("axis {axis}"), extents[axis]);
                let values = || raster.values.iter().map(|&value| f64::from(value)).collect();
                let title = object_title(&opened, *object);
                let units = text_of(&opened, *object, "units");
                let plot = match (plane, raster.shape.as_slice()) {
                    (&[column], [_]) => Plot::series(&title, units, axis(column), values()),
                    (&[row, column], &[rows, columns]) => {
                        let shape = (saturating_usize(rows), saturating_usize(columns));
                        Plot::field(&title, units, (axis(row), axis(column)), shape, values())
                    }
                    _ => return Ok(value(&raster)),
                };
                let plot = plot.with_missing(raster.missing, raster.count).with_infinite(raster.infinite);
                Ok(picture(plot))
            }
            _ => Err("not an array".to_owned()),
        }
    }

    /// The values of an object. Those of the last one are kept, for the next slice.
    fn tensor(&self, item: &Item, message: &Message, object: u64) -> Result<Arc<Tensor>, String> {
        let stamp = stamp(item.path())?;
        let known = lock(&self.tensor).clone();
        if let Some((_, _, tensor)) = known.filter(|(other, at, _)| other == item && *at == stamp) {
            return Ok(tensor);
        }
        // The memory of the last one is free before the next one needs it.
        *lock(&self.tensor) = None;
        let tensor = Arc::new(message.object(object).or_message()?.decode().or_message()?);
        *lock(&self.tensor) = Some((item.clone(), stamp, Arc::clone(&tensor)));
        Ok(tensor)
    }
}

fn value(raster: &Raster) -> Picture {
    Picture::Text(raster.values.first().map_or_else(|| "no values".to_owned(), ToString::to_string))
}

fn picture(plot: Plot) -> Picture {
    let mut finite: Vec<f64> = plot.values.iter().copied().filter(|value| value.is_finite()).collect();
    finite.sort_unstable_by(f64::total_cmp);
    let at = |percent: usize| finite.get(finite.len().saturating_sub(1) * percent / 100).copied();
    let stretch = at(2).zip(at(98)).filter(|(low, high)| low < high);
    Picture::Plot { plot: Box::new(plot), stretch }
}

fn text_of(message: &Message, object: u64, key: &str) -> Option<String> {
    message.metadata().get_for_objects(&[object], key)?.as_text().map(str::to_owned)
}

/// The name of an object, escaped.
pub(super) fn object_name(message: &Message, object: u64) -> Option<String> {
    text_of(message, object, "name").map(|name| safe(&name))
}

fn object_title(message: &Message, object: u64) -> String {
    let place = format!("message {}, object {object}", message.number());
    match object_name(message, object) {
        Some(name) => format!("{name} ({place})"),
        None => place,
    }
}
