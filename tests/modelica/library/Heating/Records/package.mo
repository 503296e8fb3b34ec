within Heating;
package Records "Data of parts"
end Records;
