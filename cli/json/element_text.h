#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "cli/json/json_type.h"
#include "ops/elements.h"
#include "penstock/tensor.h"

namespace penstock::cli {

/// A host tensor's elements as people and programs read them, by index in C order: texts in quotes and bytes as b'...',
/// as Python writes them, and records by their fields: (1, 2.5) as text, {"x": 1, "y": 2.5} as JSON. All others are as
/// ElementPrinter says. Text is safe to print.
class ElementText {
 public:
  explicit ElementText(const Tensor& tensor);
  std::string text(std::size_t index);
  /// Numbers that JSON lacks (nan, inf) are strings.
  Json json(std::size_t index);

 private:
  struct Field {
    std::string name;
    std::shared_ptr<ElementText> elements;
    std::size_t count = 1;  ///< of each record
    bool is_list = false;   ///< a sub-array, whose elements are listed in C order
  };

  ops::ElementPrinter printer_;
  DType dtype_;
  std::vector<Field> fields_;  ///< of a record
};

}  // namespace penstock::cli
