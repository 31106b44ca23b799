#include "penstock/ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "data/sampler/rank_sources.h"
#include "support/errors.h"

namespace penstock {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

const std::vector<const char*> kNames = {"RANK",
                                         "WORLD_SIZE",
                                         "LOCAL_RANK",
                                         "LOCAL_WORLD_SIZE",
                                         "TORCHELASTIC_RUN_ID",
                                         "SLURM_PROCID",
                                         "SLURM_NTASKS",
                                         "SLURM_LOCALID",
                                         "SLURM_NTASKS_PER_NODE",
                                         "SLURM_JOB_NAME",
                                         "OMPI_COMM_WORLD_RANK",
                                         "OMPI_COMM_WORLD_SIZE",
                                         "OMPI_COMM_WORLD_LOCAL_RANK",
                                         "OMPI_COMM_WORLD_LOCAL_SIZE",
                                         "PMI_RANK",
                                         "PMI_SIZE",
                                         "MPI_LOCALRANKID",
                                         "MPI_LOCALNRANKS"};

/// The environment has these variables of launchers alone, as long as this lives.
class Environment {
 public:
  explicit Environment(const Variables& variables) {
    for (const char* name : kNames) {
      if (const char* value = std::getenv(name)) before_[name] = value;
      ::unsetenv(name);
    }
    for (const auto& [name, value] : variables) ::setenv(name.c_str(), value.c_str(), 1);
  }
  ~Environment() {
    for (const char* name : kNames) ::unsetenv(name);
    for (const auto& [name, value] : before_) ::setenv(name.c_str(), value.c_str(), 1);
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  Variables before_;
};

Ranks found(const Variables& variables) {
  const Environment environment(variables);
  return ranks();
}

std::string refused(const Variables& variables, std::optional<Ranks> known = {}) {
  const Environment environment(variables);
  const auto error = test::error_of([&] { data::reconciled(known); });
  EXPECT_EQ(error->code(), ErrorCode::kInvalidArgument);
  return error->message();
}

TEST(Ranks, WithoutALauncherThereIsOne) {
  const Ranks one = found({});
  EXPECT_EQ(one.rank, 0);
  EXPECT_EQ(one.size, 1);
  EXPECT_EQ(one.local_rank, 0);
  EXPECT_EQ(one.local_size, 1);
  EXPECT_EQ(one.source, "no launcher");
}

TEST(Ranks, EachLauncherIsKnownByItsVariables) {
  struct Case {
    Variables variables;
    std::string source;
  };
  const std::vector<Case> cases = {
      {{{"RANK", "3"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "2"}}, "RANK and WORLD_SIZE"},
      {{{"SLURM_PROCID", "3"}, {"SLURM_NTASKS", "8"}, {"SLURM_LOCALID", "1"}, {"SLURM_NTASKS_PER_NODE", "2"}},
       "SLURM_PROCID and SLURM_NTASKS"},
      {{{"OMPI_COMM_WORLD_RANK", "3"},
        {"OMPI_COMM_WORLD_SIZE", "8"},
        {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
        {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}},
       "OMPI_COMM_WORLD_RANK and OMPI_COMM_WORLD_SIZE"},
      {{{"PMI_RANK", "3"}, {"PMI_SIZE", "8"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}},
       "PMI_RANK and PMI_SIZE"},
  };
  for (const Case& c : cases) {
    const Ranks ranks = found(c.variables);
    EXPECT_EQ(ranks.rank, 3) << c.source;
    EXPECT_EQ(ranks.size, 8) << c.source;
    EXPECT_EQ(ranks.local_rank, 1) << c.source;
    EXPECT_EQ(ranks.local_size, 2) << c.source;
    EXPECT_EQ(ranks.source, c.source);
    EXPECT_EQ(ranks.to_string(), "rank 3 of 8 (" + c.source + ")");
  }
  EXPECT_FALSE(found({{"RANK", "0"}, {"WORLD_SIZE", "2"}}).local_rank);
  EXPECT_FALSE(found({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "2"}, {"SLURM_NTASKS_PER_NODE", "2(x1)"}}).local_size);
  EXPECT_FALSE(found({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "2"}, {"SLURM_NTASKS_PER_NODE", "8"}}).local_size);
}

TEST(Ranks, AShellOfSlurmIsNoTask) {
  EXPECT_EQ(found({{"SLURM_NTASKS", "8"}}).size, 1);
  EXPECT_EQ(found({{"SLURM_NTASKS", "8"}, {"SLURM_PROCID", "0"}, {"SLURM_JOB_NAME", "bash"}}).size, 1);
  EXPECT_EQ(found({{"SLURM_NTASKS", "8"}, {"SLURM_PROCID", "0"}, {"SLURM_JOB_NAME", "train"}}).size, 8);
}

TEST(Ranks, ALauncherThatStartsAnotherIsNoContradiction) {
  const Variables slurm = {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "2"}};
  Variables torchrun = {{"RANK", "6"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "2"}, {"LOCAL_WORLD_SIZE", "4"}};
  torchrun.insert(slurm.begin(), slurm.end());
  EXPECT_EQ(found(torchrun).rank, 6) << "torchrun numbers machines as they come";
  EXPECT_EQ(found({{"RANK", "1"},
                   {"WORLD_SIZE", "2"},
                   {"LOCAL_WORLD_SIZE", "1"},
                   {"TORCHELASTIC_RUN_ID", "7"},
                   {"SLURM_PROCID", "0"},
                   {"SLURM_NTASKS", "2"}})
                .rank,
            1);
  const Environment environment(slurm);
  const Ranks spawned = data::reconciled(Ranks{.rank = 3, .size = 8, .source = "torch.distributed"});
  EXPECT_EQ(spawned.rank, 3);
}

TEST(Ranks, AContradictionNamesBoth) {
  EXPECT_THAT(refused({{"RANK", "1"}, {"WORLD_SIZE", "4"}, {"SLURM_PROCID", "2"}, {"SLURM_NTASKS", "4"}}),
              AllOf(HasSubstr("rank 1 of 4 by RANK and WORLD_SIZE"),
                    HasSubstr("rank 2 of 4 by SLURM_PROCID and SLURM_NTASKS")));
  EXPECT_THAT(refused({{"RANK", "1"}, {"WORLD_SIZE", "4"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "2"}}),
              HasSubstr("rank 0 of 2 by SLURM_PROCID"))
      << "nothing says that Slurm started a launcher on each machine";
  EXPECT_THAT(refused({{"RANK", "1"}, {"WORLD_SIZE", "4"}}, Ranks{.rank = 0, .size = 4, .source = "torch.distributed"}),
              AllOf(HasSubstr("rank 0 of 4 by torch.distributed"), HasSubstr("RANK and WORLD_SIZE")));
  EXPECT_THAT(
      refused({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "2"}, {"PMI_RANK", "0"}, {"PMI_SIZE", "3"}}),
      AllOf(HasSubstr("OMPI_COMM_WORLD_SIZE"), HasSubstr("rank 0 of 3 by PMI_RANK and PMI_SIZE")));
}

TEST(Ranks, VariablesThatAreNoRanksAreNamed) {
  EXPECT_THAT(refused({{"RANK", "1"}}), HasSubstr("RANK is set, but WORLD_SIZE is not"));
  EXPECT_THAT(refused({{"WORLD_SIZE", "1"}}), HasSubstr("WORLD_SIZE is set, but RANK is not"));
  EXPECT_THAT(refused({{"SLURM_PROCID", "1"}}), HasSubstr("SLURM_NTASKS is not"));
  for (const char* value : {"x", "-1", "1.5", "1 ", "99999999999999999999"}) {
    EXPECT_THAT(refused({{"RANK", value}, {"WORLD_SIZE", "4"}}), HasSubstr("RANK is '" + std::string(value))) << value;
  }
  EXPECT_THAT(refused({{"RANK", "4"}, {"WORLD_SIZE", "4"}}), HasSubstr("rank 4 of 4"));
  EXPECT_THAT(refused({{"RANK", "0"}, {"WORLD_SIZE", "0"}}),
              HasSubstr("rank 0 of 0 (RANK and WORLD_SIZE), expected a number of ranks from 1"));
  EXPECT_THAT(refused({{"RANK", "0"}, {"WORLD_SIZE", "4"}, {"LOCAL_RANK", "2"}, {"LOCAL_WORLD_SIZE", "2"}}),
              HasSubstr("LOCAL_RANK is 2, but LOCAL_WORLD_SIZE is 2"));
  EXPECT_THAT(refused({{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"LOCAL_WORLD_SIZE", "7"}}),
              HasSubstr("LOCAL_WORLD_SIZE is 7, but WORLD_SIZE is 2"));
  EXPECT_THAT(refused({{"RANK", "0"}, {"WORLD_SIZE", "1099511627776"}}), HasSubstr("from 1 to 2147483648"));
}

}  // namespace
}  // namespace penstock
