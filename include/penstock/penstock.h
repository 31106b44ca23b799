#pragma once

/// Everything: tensors from files to memory, and batches for training loops. To load files, look at load.h first; for
/// batches, at dataset.h and then loader.h; to write files, at save.h and writer.h.

#include "penstock/async.h"
#include "penstock/buffer.h"
#include "penstock/collate.h"
#include "penstock/dataset.h"
#include "penstock/device.h"
#include "penstock/dtype.h"
#include "penstock/error.h"
#include "penstock/labels.h"
#include "penstock/lengths.h"
#include "penstock/load.h"
#include "penstock/loader.h"
#include "penstock/mix.h"
#include "penstock/ops.h"
#include "penstock/pack.h"
#include "penstock/promote.h"
#include "penstock/random.h"
#include "penstock/ranks.h"
#include "penstock/report.h"
#include "penstock/sampler.h"
#include "penstock/save.h"
#include "penstock/shape.h"
#include "penstock/source.h"
#include "penstock/standard.h"  // first: it says what is wrong with an older compiler
#include "penstock/stream.h"
#include "penstock/tensor.h"
#include "penstock/transfer.h"
#include "penstock/value.h"
#include "penstock/writable.h"
#include "penstock/writer.h"
