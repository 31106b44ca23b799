#include "penstock/labels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "data/support.h"
#include "penstock/lengths.h"

namespace penstock {
namespace {

using test::TemporaryFolder;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// cat/1.npy, cat/2.npy, dog/1.npy and a table.
class Labels : public ::testing::Test {
 protected:
  Labels() {
    for (const char* name : {"cat", "dog"}) std::filesystem::create_directory(folder_ / name);
    for (const char* name : {"cat/1.npy", "cat/2.npy", "dog/1.npy"}) {
      save(Tensor::zeros(Shape{3}), folder_ / name, {.sync = false});
    }
  }

  Dataset samples() const { return files(folder_ / "*/*.npy"); }
  Dataset labelled(const std::string& text, const LabelOptions& options = {}) const {
    test::write_file(folder_ / "labels.csv", text);
    return with_labels(samples(), folder_ / "labels.csv", options);
  }
  std::optional<Error> refused(const std::string& text, const LabelOptions& options = {}) const {
    const auto error = test::error_of([&] { labelled(text, options); });
    EXPECT_EQ(error->code(), ErrorCode::kInvalidArgument);
    return error;
  }

  TemporaryFolder folder_;
};

std::vector<std::int64_t> integers(const Dataset& dataset) {
  std::vector<std::int64_t> out;
  for (std::int64_t i = 0; i < dataset.size(); ++i) out.push_back(dataset.get(i)[1].as_int());
  return out;
}

TEST_F(Labels, AreJoinedByTheEndOfAPath) {
  const Dataset pairs = labelled("file,label\ncat/1.npy,10\n2,20\ndog/1,-30\nelse.npy,5\n");
  EXPECT_THAT(integers(pairs), ElementsAre(10, 20, -30));
  EXPECT_EQ(pairs.get(0)[0].as_tensor().shape(), (Shape{3}));
  EXPECT_EQ(pairs.paths(), samples().paths());
  EXPECT_THAT(lengths(pairs), ElementsAre(3, 3, 3));
  DataLoader loader(pairs, {.batch_size = 3, .num_workers = 1});
  EXPECT_THAT(test::values_of<std::int64_t>((*loader.next())[1]), ElementsAre(10, 20, -30));
  EXPECT_THAT(integers(labelled("file,label\n1.npy,1\n2.npy,2\ndog/1.npy,3\n")), ElementsAre(1, 2, 3))
      << "the longest name counts";
}

TEST_F(Labels, AreClassesWhereTheyAreNoNumbers) {
  const Dataset pairs = labelled(
      "\xEF\xBB\xBF"
      "id,\"what, then\",path\r\n7,\"a \"\"zebra\"\"\",cat/1\r\n8,ox,cat/2\r\n\r\n9,ox,dog/1",
      {.file = "path", .label = "what, then"});
  EXPECT_THAT(pairs.classes(), ElementsAre("a \"zebra\"", "ox"));
  EXPECT_THAT(integers(pairs), ElementsAre(0, 1, 1));
  const Dataset floats = labelled("f,l\ncat/1,1\ncat/2,2.5\ndog/1,-3e2\n");
  EXPECT_EQ(floats.get(0)[1].as_float(), 1.0);
  EXPECT_EQ(floats.get(2)[1].as_float(), -300.0);
  EXPECT_EQ(test::code_of([&] { floats.classes(); }), ErrorCode::kInvalidArgument);
}

TEST_F(Labels, MayBeWrittenAsSpreadsheetsAndPeopleDo) {
  EXPECT_THAT(integers(labelled("f,l\n1, 5\ndog/1,\t-7 \n2,+9\n")), ElementsAre(5, 9, -7));
  EXPECT_THAT(integers(labelled("f,l\r1,5\r2,9\r")), ElementsAre(5, 9, 5)) << "lines that end with a return alone";
  EXPECT_THAT(integers(labelled("f,l\n./1.npy,5,,\n2,9,\n")), ElementsAre(5, 9, 5)) << "empty columns at the end";
  EXPECT_THAT(labelled("f,l\n1, cat\n2,cat\n").classes(), ElementsAre(" cat", "cat")) << "names stay as they are";
}

TEST_F(Labels, OfATableThatIsAHoleTakeNoMemory) {
  const auto table = folder_ / "hole.csv";
  test::write_file(table, "f,l\n");
  std::filesystem::resize_file(table, std::uintmax_t{1} << 42);
  EXPECT_THAT(test::error_of([&] { with_labels(samples(), table); })->message(), HasSubstr("zero byte"));
}

TEST_F(Labels, SayWhatIsWrongWithATable) {
  EXPECT_THAT(refused("f,l\n1,5\n2,\n")->message(), HasSubstr("empty label"));
  EXPECT_THAT(refused("f,l\n1,5\n2, \n")->path(), HasSubstr("cat/2.npy"));
  EXPECT_THAT(refused("f,l\n1,0,5\n2,1\n")->message(), HasSubstr("line 2 has 3 columns"));
  EXPECT_THAT(refused("f,l\n1,1\n2,9223372036854775808\n")->message(), HasSubstr("64 bits"));
  EXPECT_THAT(refused("f,l\n1,0.5\n2,-9223372036854775809\n")->message(), HasSubstr("64 bits"));
  EXPECT_THAT(refused("\xFF\xFE"
                      "f,l\n")
                  ->message(),
              HasSubstr("UTF-16"));
  EXPECT_THAT(refused(std::string("f,l\n1,5\n\0", 9))->message(), HasSubstr("zero byte"));
  EXPECT_THAT(refused("file,label\ncat/1,1\ndog/1,1\n")->path(), HasSubstr("cat/2.npy"));
  EXPECT_THAT(refused("file,label\n1,1\n2,2\n1,3\n")->message(), HasSubstr("two labels"));
  EXPECT_THAT(refused("file,label\n1\n")->message(), AllOf(HasSubstr("line 2"), HasSubstr("1 column")));
  EXPECT_THAT(refused("file,label\n1,\"2\n")->message(), AllOf(HasSubstr("line 2"), HasSubstr("not closed")));
  EXPECT_THAT(refused("file,label\n1,\"2\"3\n")->message(), HasSubstr("line 2"));
  EXPECT_THAT(refused("")->message(), HasSubstr("empty"));
  EXPECT_THAT(refused("file\n1\n")->message(), HasSubstr("two"));
  EXPECT_THAT(refused("file,label\n1,2\n", {.label = "labels"})->message(), HasSubstr("'label'"));
  EXPECT_EQ(test::code_of([&] { with_labels(samples(), folder_ / "none.csv"); }), ErrorCode::kNotFound);
  EXPECT_EQ(test::code_of([&] {
              with_labels(rows(Tensor::zeros(Shape{2})), std::vector<std::pair<std::string, std::string>>{{"a", "b"}});
            }),
            ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace penstock
