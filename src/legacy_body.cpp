#include "legacy_body.h"

#include "legacy_expression.h"

namespace snowflake::legacy
{
namespace
{

constexpr char kUnknownStatement[] =
    "only assignments, SELECT ... INTO a variable and a final RETURN can be read";
constexpr char kUnknownSelect[] = "only SELECT of one expression INTO a variable can be read";

/* As the catalogue has it, which is as it would have to be quoted. */
Token exact_name(std::string_view name)
{
    return {TokenKind::quoted_word, name, 0, nullptr};
}

/* The body's statements, one after another: there is nothing in them that jumps. */
class Body
{
public:
    Body(std::string_view body, std::string_view out_parameter)
        : cursor_(body), expressions_(cursor_, variables_),
          out_parameter_(exact_name(out_parameter))
    {
        if (has_out_parameter())
            variables_.add({out_parameter_, Type::int8, false, of_kind(Kind::unset, Type::int8)});
    }
    Body(const Body&) = delete;
    Body& operator=(const Body&) = delete;

    Reading read();

private:
    bool has_out_parameter() const { return !out_parameter_.text.empty(); }
    void declarations();
    void declaration();
    void statements();
    void assignment();
    void select_into();
    Variable* into();
    Variable* target();
    void assign(const Token& at, Variable* variable, const Value& value);
    void return_value();
    void check_id(const Token& at, const Value& id);
    Reading refusal() const;

    Cursor cursor_;
    Variables variables_;
    Expressions expressions_;
    Token out_parameter_;
    Value id_ = {};
};

/* PL/pgSQL has options and a label before the DECLARE as well; either is refused. */
Reading Body::read()
{
    if (cursor_.at_word("declare"))
        declarations();
    cursor_.expect_word("begin", "BEGIN is expected here");
    statements();
    cursor_.accept_symbol(";");
    if (cursor_.token().kind != TokenKind::end)
        cursor_.refuse("something follows the end of the body");

    if (cursor_.refused())
        return refusal();
    return {true, id_.epoch, id_.shard_number, expressions_.sequence(), 0, nullptr, {}};
}

/* Of what stands in quotes, the quotes are shown too. */
Reading Body::refusal() const
{
    const Token& at = cursor_.refusal();
    std::string_view near = at.text;
    if (at.kind == TokenKind::string || at.kind == TokenKind::quoted_word)
        near = {near.data() - 1, near.size() + 2};
    return {false, Epoch{0}, 0, {}, at.line, at.problem, near};
}

/* Without DECLARE there are no variables but the OUT parameter. */
void Body::declarations()
{
    while (!cursor_.refused() && !cursor_.at_word("begin"))
        if (!cursor_.accept_word("declare")) /* PL/pgSQL lets it be repeated */
            declaration();
}

/*
 * A second variable of a name would hide the first, and one of the OUT parameter's name would leave
 * that NULL.
 */
void Body::declaration()
{
    const Token name = cursor_.take();
    const bool is_name = name.kind == TokenKind::word || name.kind == TokenKind::quoted_word;
    if (!is_name || is_reserved(name))
        cursor_.refuse(name, "a variable's name is expected here");
    if (variables_.find(name) != nullptr)
        cursor_.refuse(name, "this name is declared already");

    Variable variable = {name, Type::int8, cursor_.accept_word("constant"), {}};
    variable.type = expressions_.type();
    const bool not_null = cursor_.accept_word("not");
    if (not_null)
        cursor_.expect_word("null", "NULL is expected here");
    if (cursor_.accept_symbol(":=") || cursor_.accept_symbol("=") || cursor_.accept_word("default"))
        variable.value = expressions_.expression_of(variable.type);
    else if (not_null)
        cursor_.refuse("a variable that is NOT NULL needs a value");
    cursor_.expect_symbol(";", "this is not a declaration that can be read");
    if (!variables_.add(variable))
        cursor_.refuse(name, "there are too many variables");
}

/*
 * To the END of the body. A nested block would begin with a word that is no variable, so it is
 * refused like any other statement, and the END that is found belongs to this BEGIN.
 */
void Body::statements()
{
    bool returned = false;
    while (!cursor_.refused() && !cursor_.at_word("end")) {
        if (returned)
            cursor_.refuse("a statement follows RETURN");
        returned = cursor_.at_word("return");
        if (returned)
            return_value();
        else if (cursor_.at_word("select"))
            select_into();
        else
            assignment();
    }
    const Token end = cursor_.take();
    if (returned)
        return;
    if (!has_out_parameter())
        cursor_.refuse(end, "there is no RETURN before the end");
    else
        check_id(end, variables_.find(out_parameter_)->value);
}

/* PL/pgSQL takes = for := here, and nothing but a variable to its left. */
void Body::assignment()
{
    const Token first = cursor_.token();
    Variable* variable = target();
    if (!cursor_.accept_symbol(":=") && !cursor_.accept_symbol("="))
        cursor_.refuse(first, kUnknownStatement);
    const Value value = expressions_.expression();
    cursor_.expect_symbol(";", "the expression goes on with something that cannot be read");
    assign(first, variable, value);
}

/* INTO stands before or after the expression. */
void Body::select_into()
{
    const Token select = cursor_.take();
    const bool into_first = cursor_.accept_word("into");
    Variable* variable = into_first ? into() : nullptr;
    const Value value = expressions_.expression();
    if (!into_first) {
        cursor_.expect_word("into", kUnknownSelect);
        variable = into();
    }
    cursor_.expect_symbol(";", kUnknownSelect);
    assign(select, variable, value);
}

/* A SELECT without FROM gives one row, so STRICT always holds. */
Variable* Body::into()
{
    cursor_.accept_word("strict");
    return target();
}

/* nullptr only where it is refused. */
Variable* Body::target()
{
    const Token name = cursor_.take();
    const bool is_name = name.kind == TokenKind::word || name.kind == TokenKind::quoted_word;
    Variable* variable = is_name && !is_reserved(name) ? variables_.find(name) : nullptr;
    if (variable == nullptr)
        cursor_.refuse(name, kUnknownStatement);
    else if (variable->is_constant)
        cursor_.refuse(name, "a constant is assigned to");
    return variable;
}

/*
 * A number in place of a number, such as another shard, could be followed; but such a body was
 * edited by hand, and whether it says what was meant is not for a program to decide.
 */
void Body::assign(const Token& at, Variable* variable, const Value& value)
{
    if (cursor_.refused())
        return;
    const Outcome converted = convert(value, variable->type);
    if (converted.problem != nullptr)
        cursor_.refuse(at, converted.problem);
    else if (variable->value.kind == Kind::constant && value.kind == Kind::constant)
        cursor_.refuse(at, "a variable that has a number already is given another");
    variable->value = converted.value;
}

/* What follows is never run, so nothing may follow. With an OUT parameter RETURN has no expression,
 * without one it must have one. */
void Body::return_value()
{
    const Token at = cursor_.take();
    const Value id = has_out_parameter() ? variables_.find(out_parameter_)->value
                                         : expressions_.expression_of(Type::int8);
    cursor_.expect_symbol(";", "this is not a RETURN that can be read");
    check_id(at, id);
}

/* A wrong shift is shown where it stands, anything else at the statement that returns. */
void Body::check_id(const Token& at, const Value& id)
{
    const Defect defect = defect_of_id(id);
    if (defect.problem != nullptr) {
        if (defect.line == 0)
            cursor_.refuse(at, defect.problem);
        else
            cursor_.refuse({TokenKind::symbol, "<<", defect.line, nullptr}, defect.problem);
    }
    id_ = id;
}

} // namespace

Reading read(std::string_view body, std::string_view out_parameter)
{
    return Body(body, out_parameter).read();
}

} // namespace snowflake::legacy
