// What follows from the one list of fields per struct: JSON and command-line round trips, unique names, help.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "orrery/base/error.h"
#include "orrery/base/text.h"
#include "orrery/config/flags.h"
#include "orrery/config/json.h"

namespace orrery::config {
namespace {

using testing::HasSubstr;

// A value that no field has initially, as a word of the command line.
template <class T>
std::string sample_word() {
  if constexpr (kIsOptional<T> || kIsList<T>)
    return sample_word<typename T::value_type>();
  else if constexpr (NamedEnum<T>)
    return std::string(names_of(T{}).back());
  else if constexpr (std::is_same_v<T, double>)
    return "0.5";
  else if constexpr (std::is_same_v<T, int64_t>)
    return "3";
  else
    return "some text";
}

template <class T>
T member_of(const Arguments& arguments) {
  if constexpr (std::is_same_v<T, Request>)
    return arguments.request;
  else if constexpr (std::is_same_v<T, Plan>)
    return arguments.plan;
  else
    return arguments.settings;
}

std::string option(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  return "--" + name;
}

/// The command line that moves one field away from where it starts.
template <class T, class Member>
std::vector<std::string> changing_words(Member member, const Field& field) {
  using V = std::decay_t<decltype(T{}.*member)>;
  if constexpr (std::is_same_v<V, bool>)
    return {option((T{}.*member ? "no_" : "") + std::string(field.name))};
  else if constexpr (std::is_same_v<V, std::optional<bool>>)
    return {option(std::string(field.name))};
  else
    return {option(std::string(field.name)), sample_word<V>()};
}

template <class T>
class Fields : public testing::Test {};
using Structs = testing::Types<Request, Plan, Settings>;
TYPED_TEST_SUITE(Fields, Structs);

TYPED_TEST(Fields, EachIsAnOptionAndSurvivesJson) {
  std::vector<std::string> all;
  TypeParam::fields([&](auto member, const Field& field) {
    const auto words = changing_words<TypeParam>(member, field);
    all.insert(all.end(), words.begin(), words.end());
    const TypeParam changed = member_of<TypeParam>(parse_arguments(words));
    EXPECT_NE(changed, TypeParam{}) << field.name;
    EXPECT_NE(changed.*member, TypeParam{}.*member) << field.name;
    const nlohmann::json json = to_json(changed);
    EXPECT_TRUE(json.contains(std::string(field.name))) << field.name;
    EXPECT_EQ(from_json<TypeParam>(json), changed) << json;
  });
  const Arguments everything = parse_arguments(all);
  EXPECT_EQ(from_json<TypeParam>(nlohmann::json(to_json(member_of<TypeParam>(everything)))),
            member_of<TypeParam>(everything));
}

TYPED_TEST(Fields, AnEmptyObjectIsTheInitialStruct) {
  EXPECT_EQ(from_json<TypeParam>(nlohmann::json::object()), TypeParam{});
  EXPECT_EQ(from_json<TypeParam>(nlohmann::json(to_json(TypeParam{}))), TypeParam{});
}

TYPED_TEST(Fields, NullIsNotSet) {
  nlohmann::json json;
  for (const std::string& name : field_names<TypeParam>()) json[name] = nullptr;
  EXPECT_EQ(from_json<TypeParam>(json), TypeParam{});
}

TEST(FieldNames, AreUniqueOverAllStructsAliasesIncluded) {
  std::set<std::string> seen;
  const auto add = [&](auto, const Field& field) {
    EXPECT_TRUE(seen.emplace(field.name).second) << field.name;
    EXPECT_FALSE(field.help.empty()) << field.name;
    std::string aliases(field.aliases);
    for (size_t comma = 0; !aliases.empty(); aliases.erase(0, comma + 1)) {
      comma = std::min(aliases.find(','), aliases.size() - 1);
      const std::string alias = aliases.substr(0, aliases[comma] == ',' ? comma : comma + 1);
      EXPECT_TRUE(seen.insert(alias).second) << alias;
    }
  };
  Request::fields(add);
  Plan::fields(add);
  Settings::fields(add);
}

TEST(FieldNames, AliasesAndDashesLeadToTheSameField) {
  EXPECT_EQ(field_named<Request>("guidance-scale"), "guidance");
  EXPECT_EQ(field_named<Request>("inference_type"), "mode");
  EXPECT_EQ(field_named<Request>("num_steps"), "steps");
  EXPECT_EQ(field_named<Request>("W"), "");
  EXPECT_EQ(field_named<Request>("num_steps,"), "");
  EXPECT_EQ(field_named<Plan>("ulysses-degree"), "ulysses_degree");
}

TEST(Help, NamesEveryOption) {
  const std::string help = parse_arguments({"--help"}).help;
  const auto check = [&](auto, const Field& field) {
    EXPECT_THAT(help, HasSubstr(option(std::string(field.name))));
  };
  Request::fields(check);
  Plan::fields(check);
  Settings::fields(check);
  EXPECT_EQ(parse_arguments({"-p", "x"}).help, "");
}

TEST(Json, SettingsTakeAListOfFiles) {
  const auto json = nlohmann::json::parse(R"({"input": ["a.json", "b.json"], "keep-going": false})");
  const Settings settings = from_json<Settings>(json);
  EXPECT_EQ(settings.input, (std::vector<std::string>{"a.json", "b.json"}));
  EXPECT_FALSE(settings.keep_going);
}

TEST(Json, IntegersMayBeWrittenAsFloats) {
  EXPECT_EQ(from_json<Request>(nlohmann::json::parse(R"({"num_frames": 93.0})")).num_frames, 93);
  for (const char* text :
       {R"({"num_frames": 1e30})", R"({"seed": 18446744073709551615})", R"({"num_frames": 93.5})"})
    EXPECT_THROW(from_json<Request>(nlohmann::json::parse(text)), Error) << text;
}

TEST(Json, TheCheckpointsRecommendedSettingsAreARequest) {
  const Request request = from_json<Request>(nlohmann::json::parse(R"({
    "height": 64, "width": 96, "num_frames": 17, "fps": 8, "max_sequence_length": 64, "num_inference_steps": 35,
    "guidance_scale": 3.0, "negative_prompt": "", "conditional_frame_timestep": 0.0001})"));
  EXPECT_EQ(request.guidance, 3.0);
  EXPECT_EQ(request.negative_prompt, "");
  EXPECT_EQ(request.conditional_frame_timestep, 0.0001);
}

TEST(Json, LocatesItsErrors) {
  const auto locate = [](const std::string& field) { return "file:" + field + ": "; };
  try {
    from_json<Plan>(nlohmann::json::parse(R"({"ranks": "two"})"), locate);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kRequest);
    EXPECT_EQ(error.message(), "file:ranks: ranks: expected an integer, found \"two\"");
  }
}

}  // namespace
}  // namespace orrery::config
