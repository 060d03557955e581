//! The same object or range of many messages in one call.

use std::ops::Range;

use rayon::prelude::*;
use tercet_core::Tensor;
use tercet_core::threads::install;

use super::File;
use crate::error::Error;
use crate::message::Message;
use crate::metadata::GlobalMetadata;
use crate::object::Ranges;

impl File {
    /// Decodes the same object of several messages, in parallel.
    ///
    /// ```
    /// use tercet_tgm::{DataObjectDescriptor, DType, EncodeOptions, File, GlobalMetadata, encode_message};
    ///
    /// let descriptor = DataObjectDescriptor::new(DType::U8, [2]);
    /// let mut bytes = Vec::new();
    /// for value in 0..9 {
    ///     let objects: [(&_, &[u8]); 1] = [(&descriptor, &[value, value])];
    ///     bytes.extend(encode_message(&GlobalMetadata::default(), &objects, &EncodeOptions::new())?);
    /// }
    /// let file = File::from_bytes("run", bytes)?;
    /// let arrays = file.decode_object_of(&[8, 0, 3], 0)?;
    /// assert_eq!(arrays.iter().map(|array| array.bytes()[0]).collect::<Vec<_>>(), [8, 0, 3]);
    /// # Ok::<(), tercet_tgm::Error>(())
    /// ```
    pub fn decode_object_of(&self, messages: &[u64], object: u64) -> Result<Vec<Tensor>, Error> {
        self.each_message(messages, |message| message.object(object)?.decode())
    }

    /// Decodes the same ranges of the same object of several messages, in parallel: see
    /// [`Object::decode_ranges`](crate::Object::decode_ranges).
    pub fn decode_ranges_of(
        &self,
        messages: &[u64],
        object: u64,
        ranges: &[Range<u64>],
    ) -> Result<Vec<Ranges>, Error> {
        self.each_message(messages, |message| message.object(object)?.decode_ranges(ranges))
    }

    /// The metadata of several messages, in parallel.
    pub fn metadata_of(&self, messages: &[u64]) -> Result<Vec<GlobalMetadata>, Error> {
        self.each_message(messages, |message| Ok(message.metadata().clone()))
    }

    /// Calls `work` for several messages, in parallel; the results are in order.
    pub(crate) fn each_message<T: Send>(
        &self,
        messages: &[u64],
        work: impl Fn(&Message) -> Result<T, Error> + Sync,
    ) -> Result<Vec<T>, Error> {
        let one = |&index: &u64| self.message(index).and_then(|message| work(&message));
        let run = || messages.par_iter().with_min_len(4).map(one).collect::<Vec<_>>();
        install(self.options.common.threads, run).into_iter().collect()
    }
}
