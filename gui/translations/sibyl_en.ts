<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="en_US">
<context>
    <name>sibyl::gui::MainWindow</name>
    <message numerus="yes">
        <source>%n file(s) written to %1</source>
        <translation>
            <numerusform>%n file written to %1</numerusform>
            <numerusform>%n files written to %1</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>sibyl::gui::TimelineTotals</name>
    <message numerus="yes">
        <source>%1 to %2, %3 of %n stream(s)</source>
        <translation>
            <numerusform>%1 to %2, %3 of %n stream</numerusform>
            <numerusform>%1 to %2, %3 of %n streams</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>All %n stream(s)</source>
        <translation>
            <numerusform>All %n stream</numerusform>
            <numerusform>All %n streams</numerusform>
        </translation>
    </message>
</context>
</TS>
