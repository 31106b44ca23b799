// A date counts steps of a unit from 1970. What does not fit into 64 bits on the way (25 years of 2^62) is computed in
// 128.

#include "ops/date_text.h"

#include <array>
#include <charconv>

#include "core/format.h"

namespace penstock::ops {
namespace {

__extension__ using Wide = __int128;

/// A unit below a day: how many of it a day has as seconds, and digits behind the point of one.
struct Clock {
  std::string_view name;
  std::int64_t a_second;  ///< how many units a second has; 0: the unit is `seconds` long
  std::int64_t seconds;
  int digits;
};
constexpr std::array<Clock, 9> kClocks{{{"h", 0, 3600, 0},
                                        {"m", 0, 60, 0},
                                        {"s", 1, 1, 0},
                                        {"ms", 1'000, 1, 3},
                                        {"us", 1'000'000, 1, 6},
                                        {"ns", 1'000'000'000, 1, 9},
                                        {"ps", 1'000'000'000'000, 1, 12},
                                        {"fs", 1'000'000'000'000'000, 1, 15},
                                        {"as", 1'000'000'000'000'000'000, 1, 18}}};
constexpr std::int64_t kDay = 86'400;

/// a / b and the rest, which is not negative.
Wide floored(Wide a, Wide b, Wide& rest) {
  Wide out = a / b;
  rest = a % b;
  if (rest < 0) {
    rest += b;
    --out;
  }
  return out;
}

std::string digits_of(Wide number) {
  std::string out;
  do {
    out.insert(out.begin(), static_cast<char>('0' + static_cast<int>(number % 10)));
    number /= 10;
  } while (number != 0);
  return out;
}

std::string padded(Wide number, std::size_t width) {
  std::string out = digits_of(number);
  return out.size() < width ? std::string(width - out.size(), '0') + out : out;
}

std::string year_text(Wide year) { return (year < 0 ? "-" : "") + padded(year < 0 ? -year : year, year < 0 ? 3 : 4); }

/// The civil date of a day, by the proleptic Gregorian calendar: 400 years have 146,097 days.
std::string day_text(Wide days) {
  Wide of_era = 0;
  const Wide era = floored(days + 719'468, 146'097, of_era);  // from 0000-03-01 on
  const Wide year_of_era = (of_era - of_era / 1'460 + of_era / 36'524 - of_era / 146'096) / 365;
  const Wide day_of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const Wide march_month = (5 * day_of_year + 2) / 153;
  const Wide day = day_of_year - (153 * march_month + 2) / 5 + 1;
  const Wide month = march_month < 10 ? march_month + 3 : march_month - 9;
  const Wide year = year_of_era + era * 400 + (month <= 2 ? 1 : 0);
  return year_text(year) + "-" + padded(month, 2) + "-" + padded(day, 2);
}

std::string month_text(Wide months) {
  Wide month = 0;
  const Wide year = floored(months, 12, month);
  return year_text(year + 1970) + "-" + padded(month + 1, 2);
}

std::string clock_text(Wide units, const Clock& clock) {
  Wide fraction = 0;
  const Wide seconds = clock.a_second == 0 ? units * clock.seconds : floored(units, clock.a_second, fraction);
  Wide of_day = 0;
  const Wide day = floored(seconds, kDay, of_day);
  std::string out = day_text(day) + "T" + padded(of_day / 3600, 2);
  if (clock.name == "h") return out;
  out += ":" + padded(of_day / 60 % 60, 2);
  if (clock.name == "m") return out;
  out += ":" + padded(of_day % 60, 2);
  return clock.digits == 0 ? out : out + "." + padded(fraction, static_cast<std::size_t>(clock.digits));
}

}  // namespace

std::string date_text(std::int64_t value, std::string_view unit) {
  if (value == kNaT) return "NaT";
  std::int64_t step = 1;
  const auto [behind, error] = std::from_chars(unit.data(), unit.data() + unit.size(), step);
  if (error != std::errc()) step = 1;
  const std::string_view name = unit.substr(static_cast<std::size_t>(behind - unit.data()));
  const Wide units = Wide{value} * step;
  if (name == "Y") return year_text(units + 1970);
  if (name == "M") return month_text(units);
  if (name == "W") return day_text(units * 7);
  if (name == "D") return day_text(units);
  for (const Clock& clock : kClocks) {
    if (name == clock.name) return clock_text(units, clock);
  }
  return core::format("{}", value);
}

}  // namespace penstock::ops
