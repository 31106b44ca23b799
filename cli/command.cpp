#include "cli/command.h"

namespace penstock::cli {

std::span<const Command> commands() noexcept {
  static const std::array kCommands{kLs,     kInfo,    kCat,     kShow,       kStats,  kDiff,  kHash,
                                    kReport, kVerify,  kConvert, kPack,       kSample, kBench, kDoctor,
                                    kCache,  kUploads, kVersion, kCompletion, kMan,    kHelp};
  return kCommands;
}

}  // namespace penstock::cli
