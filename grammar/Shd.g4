// The grammar of .shd files, version 1: programs, hardware files and the texts
// of --hardware, --mesh, --dim, --sweep and --crossover (docs/Language.md,
// docs/CommandLine.md).
//
// The parser (lib/Frontend/Parser.cpp) walks `program`, `item` and `block` by
// hand and calls one rule for each statement, so that one broken statement
// costs one error. Decisions are kept to one or two tokens of lookahead: a
// reference and a call share `reference`, whose brackets admit both an index
// list and a function's indices, and the AST builder tells them apart.
grammar Shd;

program : item* EOF ;

item
  : importDecl | hardwareDecl | meshDecl | dimDecl | orderDecl | tensorDecl | outputDecl
  | layerDecl | trainBlock | serveBlock | placing | repeatStmt | assignStmt
  ;
block : '{' item* '}' ;

// ---- declarations
importDecl   : 'import' path=STRING ;

hardwareDecl : 'hardware' hardwareSpec ;
hardwareSpec : name hwShape? hwBody? ;                   // also --hardware
hwShape      : '[' extents+=dimExpr (',' extents+=dimExpr)* ']' ;
hwBody       : '{' items+=hwItem* '}' ;
hwItem       : network | calibration | hwField ;
network      : 'network' name (kind=('torus' | 'switch' | 'mesh') nameList?)?
               '{' fields+=hwField* '}' ;
nameList     : '[' names+=name (',' names+=name)* ']' ;
calibration  : 'calibration' '{' (fields+=hwField | networks+=network)* '}' ;
hwField      : dotted '=' hwValue ;
dotted       : name ('.' (name | TYPE))* ;
hwValue      : quantity | word | hwList ;
hwList       : '[' numbers+=integer (',' numbers+=integer)* ']' ;
quantity     : number unit? ;
unit         : name ('/' name)? ;                        // checked against the unit table
word         : wordName ('(' arguments+=integer (',' arguments+=integer)* ')')? ;
wordName     : name | TYPE | 'true' | 'false' | 'none' ;

meshDecl     : 'mesh' meshSpec ;
meshSpec     : 'auto' nameList? | '[' axes+=meshAxis (',' axes+=meshAxis)* ']' ;   // also --mesh
meshAxis     : name '=' dimExpr ('on' axisNames)? ;
axisNames    : names+=name | '(' names+=name (',' names+=name)* ')' ;

dimDecl      : 'dim' defs+=dimDef (',' defs+=dimDef)* ;
dimDef       : name '=' dimExpr ;                        // also --dim
dimExpr      : terms+=dimTerm (ops+=('+' | '-') terms+=dimTerm)* ;
dimTerm      : factors+=dimUnary (ops+=('*' | '/' | '%') factors+=dimUnary)* ;
dimUnary     : minuses+='-'* dimPrimary ;
dimPrimary
  : integer
  | name (call='(' operands+=dimExpr (',' operands+=dimExpr)* ')')?
  | '(' operands+=dimExpr ')'
  ;

orderDecl    : 'order' defs+=orderDef (',' defs+=orderDef)* ;
orderDef     : index=name '=' order=name ;               // contiguous, zigzag

tensorDecl   : kind=('input' | 'weight' | 'state') name ':' TYPE dims ;
outputDecl   : 'output' name dims? ;
dims         : '[' (names+=placedName (',' names+=placedName)*)? ']' partial? ;
placedName   : name placement? ;

layerDecl    : layerHead block ;
layerHead    : 'layer' own=name '(' (params+=param (',' params+=param)*)? ')'
               '->' '(' (results+=name (',' results+=name)*)? ')' ;
param        : name ':' (TYPE dims | 'dim') ;

// ---- statements
repeatStmt   : repeatHead block ;
repeatHead   : 'repeat' own=name placement? ('microbatches' '(' dimExpr ')')?
               ('schedule' '(' settingValue ')')?
               (save='save' '(' (saved+=name (',' saved+=name)*)? ')')? ;
assignStmt   : first=target (':' TYPE (brackets partial?)?)? (',' others+=target)* op=('=' | '+=') expr ;
target       : name (brackets partial?)? ;

// ---- expressions
expr         : left=sumExpr (op=('==' | '!=' | '<' | '<=' | '>' | '>=') right=sumExpr)? ;
sumExpr      : terms+=product (ops+=('+' | '-') terms+=product)* ;
product      : factors+=unary (ops+=('*' | '/' | '%') factors+=unary)* ;
unary        : minuses+='-'* primary ;
primary
  : number
  | 'inf'
  | builtin
  | cast
  | reference
  | '(' expr ')'
  ;
builtin      : kind=('size' | 'iota') brackets ;
cast         : TYPE callArguments ;
reference    : name (brackets (partial | callArguments)? | callArguments)? ;
callArguments : '(' (arguments+=argument (',' arguments+=argument)*)? ')' ;
argument     : (name '=')? argumentValue ;
argumentValue : expr | literal=('true' | 'false' | 'none') | TYPE ;

brackets     : '[' (entries+=entry (',' entries+=entry)*)? ']' ;
// An index (`B@X`, `T - 1`, `tokens[B, T]@X`), or what only a function takes:
// a range (`I: 2..6 -> J`) or a regrouping (`(A, B) -> D`).
entry
  : tuple '->' group
  | sumExpr placement? (':' low=dimExpr '..' high=dimExpr)? ('->' group)?
  ;
tuple        : '(' names+=placedName (',' names+=placedName)+ ')' ;
group        : names+=placedName | '(' names+=placedName (',' names+=placedName)* ')' ;
placement    : '@' (open='?' | axes+=name | '(' (axes+=name (',' axes+=name)*)? ')') ;
partial      : '{' '+' axes+=name (',' '+' axes+=name)* '}' ;

// ---- training, serving
trainBlock   : 'train' '{' items+=trainItem* '}' ;
trainItem    : key=name '=' settingValue (',' settingValue)* | placing ;
placing      : key=name placed+=placedTensor (',' placed+=placedTensor)*
               ('=' operands+=placedTensor (',' operands+=placedTensor)*)? ;
// A name in quotes is that of a value of the whole step, such as "h.grad.2".
placedTensor : (name | STRING) dims? ('->' stored=dims)? ;
serveBlock   : 'serve' '{' (settings+=setting | machines+=phaseMachine)* '}' ;
phaseMachine : phase=name 'on' hardwareSpec ('mesh' meshSpec)? ;
setting      : name '=' settingValue ;
settingValue
  : ONE_F_ONE_B ('(' integer ')')?
  | TYPE | 'true' | 'false' | 'none' | STRING | REAL
  | dimExpr
  | name '(' namedValue (',' namedValue)* ')'
  ;
namedValue   : name '=' (TYPE | 'none' | REAL | dimExpr) ;

// ---- questions: the texts of --sweep and --crossover
question
  : what='hardware' 'in' machines+=hardwareSpec (',' machines+=hardwareSpec)*
  | name 'in' values+=integer
    ('..' high=integer (op=('*' | '+') step=integer)? | (',' values+=integer)*)
  ;

number       : INT | HEX | REAL ;
integer      : INT | HEX ;
// Words that are keywords only in their place.
name         : ID | 'on' | 'auto' | 'save' | 'network' | 'torus' | 'switch' | 'in'
             | 'order' | 'calibration' | 'microbatches' | 'schedule' ;

IMPORT : 'import' ;
HARDWARE : 'hardware' ;
MESH : 'mesh' ;
DIM : 'dim' ;
INPUT : 'input' ;
WEIGHT : 'weight' ;
STATE : 'state' ;
OUTPUT : 'output' ;
LAYER : 'layer' ;
TRAIN : 'train' ;
SERVE : 'serve' ;
REPEAT : 'repeat' ;
TRUE : 'true' ;
FALSE : 'false' ;
NONE : 'none' ;
INF : 'inf' ;
SIZE : 'size' ;
IOTA : 'iota' ;
ON : 'on' ;
AUTO : 'auto' ;
SAVE : 'save' ;
NETWORK : 'network' ;
CALIBRATION : 'calibration' ;
TORUS : 'torus' ;
SWITCH : 'switch' ;
IN : 'in' ;
ORDER : 'order' ;
MICROBATCHES : 'microbatches' ;
SCHEDULE : 'schedule' ;

LBRACKET : '[' ;
RBRACKET : ']' ;
LPAREN : '(' ;
RPAREN : ')' ;
LBRACE : '{' ;
RBRACE : '}' ;
COMMA : ',' ;
COLON : ':' ;
DOT : '.' ;
DOTS : '..' ;
AT : '@' ;
QUESTION : '?' ;
ARROW : '->' ;
ASSIGN : '=' ;
ACCUMULATE : '+=' ;
EQ : '==' ;
NE : '!=' ;
LT : '<' ;
LE : '<=' ;
GT : '>' ;
GE : '>=' ;
PLUS : '+' ;
MINUS : '-' ;
STAR : '*' ;
SLASH : '/' ;
PERCENT : '%' ;

TYPE : 'f64' | 'f32' | 'tf32' | 'f16' | 'bf16' | 'f8e4m3' | 'f8e5m2' | 'f8e8m0'
     | 'f4e2m1' | 'int32' | 'int16' | 'int8' | 'int4' | 'uint8' | 'bool' ;
ONE_F_ONE_B : '1f1b' ;
HEX  : '0x' [0-9a-fA-F]+ ;
REAL : [0-9] [0-9_]* '.' [0-9]+ EXPONENT? | [0-9] [0-9_]* EXPONENT ;
INT  : [0-9] [0-9_]* ;
ID   : [A-Za-z_] [A-Za-z0-9_]* ;
STRING : '"' ~["\r\n]* '"' ;
WS : [ \t\r\n]+ -> skip ;
LINE_COMMENT : '//' ~[\r\n]* -> skip ;
BLOCK_COMMENT : '/*' .*? '*/' -> skip ;

// What is not a token of the language, so that the lexer itself never fails.
BAD_NUMBER : [0-9] [0-9_]* ('.' [0-9]+)? EXPONENT? [A-Za-z_] [A-Za-z0-9_]* ;
OPEN_STRING : '"' ~["\r\n]* ;
OPEN_COMMENT : '/*' ;
BAD_CHARACTER : . ;

fragment EXPONENT : [eE] [+-]? [0-9]+ ;
