#pragma once

// The rows of the table of formats, each declared here and defined in its own file. They have a header of their own, so
// that a new row recompiles the table and the formats, and not everything that asks a format something. Those of
// distributed checkpoints are in dcp/dcp.h.

#include "format/format.h"

namespace penstock::format {

extern const Format kNpyFormat;
extern const Format kNpzFormat;
extern const Format kPtFormat;
extern const Format kPtLegacyFormat;
extern const Format kSafetensorsFormat;
extern const Format kShardIndexFormat;
extern const Format kLlmcFormat;
extern const Format kMegatronFormat;
extern const Format kTenbinFormat;
extern const Format kTarFormat;

}  // namespace penstock::format
