within Heating;
package Examples "Plants"
end Examples;
